"""The answer as JSON, in words and as a preset, from curves made by hand."""

import json
import math
from pathlib import Path

import pytest
import yaml

from llcg_dist.advise.answer import Answer, Facts
from llcg_dist.advise.decision import Curve
from llcg_dist.advise.pilot import Candidate, candidates, longer_rounds, on_balanced_parts
from llcg_dist.advise.reasons import answer
from llcg_dist.advise.words import in_words
from llcg_dist.config.compose import load_config
from llcg_dist.config.own_files import VARIABLE
from llcg_dist.data.cut import PartitionQuality


def facts_of(tried: Candidate) -> Facts:
    parts = {tried.name: PartitionQuality(0.3, 1.1, 1.2, 0.05)}
    configs = {tried.name: load_config(tried.settings(["cluster.num_machines=4", "train.local_batch_size=64"]))}
    return Facts(4, 64, 100.0, 30.0, 600.0, parts, {tried.name: 0.8}, configs)


TRIED = longer_rounds(32)
FACTS = facts_of(TRIED)


def found(
    several_sooner: bool,
    facts: Facts = FACTS,
    bfloat16: str | None = None,
    *overrides: str,
    tried: Candidate = TRIED,
) -> Answer:
    config = load_config(["cluster.num_machines=4", "train.local_batch_size=64", *overrides])
    one = Curve(
        "one machine", True, [1.0, 2.0], [0.5, 0.8], overrides=["algorithm=single", "train.local_batch_size=16"]
    )
    each = 0.5 if several_sooner else 2.0
    together = Curve(tried.name, False, [each, 2 * each], [0.5, 0.8], 2e6, 0.16, tried.overrides)
    return answer(config, [one, together], facts, bfloat16)


def test_one_machine_where_it_wins() -> None:
    advice = found(several_sooner=False)
    assert advice.settings == {"algorithm": "single", "cluster.num_machines": 1, "train.local_batch_size": 64}
    as_json = json.loads(json.dumps(advice.as_json(), allow_nan=False))
    assert as_json["distribute"] is False
    assert as_json["seconds_to_target"] == 2.0
    assert in_words(advice).startswith("One machine is enough here: one machine.")


def test_several_machines_where_they_win() -> None:
    """The advice is what was tried."""
    advice = found(several_sooner=True)
    assert advice.settings == {
        "algorithm": "llcg_plus",
        "cluster.num_machines": 4,
        "algorithm.K": 32.0,
        "algorithm.rho": 1.1,
        "algorithm.S": 4,
        "algorithm.correction": "after",
        "train.local_batch_size": 64,
    }
    words = in_words(advice)
    assert "Several machines pay here: LLCG, K = 32." in words
    assert "lose 30 % of the edges" in words
    of_llcg = advice.as_json()["candidates"][1]
    assert of_llcg["seconds_a_round_at_mbit"] == pytest.approx({100: 0.5, 1000: 0.356, 10000: 0.3416})


def test_other_parts_are_advised_with_their_balance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    balanced = on_balanced_parts(TRIED)
    advice = found(True, facts_of(balanced), tried=balanced)
    assert (advice.settings["partition"], advice.settings["partition.balance"]) == ("metis", "labels")
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "advised.yaml").write_text(advice.preset())
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    parts = load_config(["experiment=advised"]).partition
    assert (parts.method, parts.balances) == ("metis", {"labels"})


def test_noise_that_cannot_be_told_is_no_number_in_json() -> None:
    facts = Facts(4, 64, 100.0, 30.0, math.inf, {}, {}, FACTS.configs)
    advice = found(True, facts)
    assert advice.as_json()["gradient_noise_scale"] == {"start": 30.0, "after": None}
    assert "more than the pilot can tell" in in_words(advice)


def test_wide_models_are_told_of_bfloat16() -> None:
    assert "train.precision" not in found(True, FACTS, "avx512_bf16", "model.hidden=16").settings
    assert found(True, FACTS, "avx512_bf16", "model.hidden=256").settings["train.precision"] == "bfloat16"
    assert "train.precision" not in found(True, FACTS, None, "model.hidden=256").settings


@pytest.mark.parametrize("several_sooner", [True, False])
def test_the_preset_gives_the_advised_settings(
    several_sooner: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    advice = found(several_sooner)
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "advised.yaml").write_text(advice.preset())
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    config = load_config(["experiment=advised"])
    assert config.algorithm.name == advice.settings["algorithm"]
    assert config.train.local_batch_size == advice.settings["train.local_batch_size"]
    assert config.partition.method == ("clusters" if several_sooner else "metis")
    assert load_config(["experiment=advised", "train.local_batch_size=7"]).train.local_batch_size == 7
    assert "defaults" in yaml.safe_load(advice.preset())


def test_what_is_tried_follows_the_settings() -> None:
    config = load_config(["cluster.num_machines=4", "train.local_batch_size=64"])
    tried = [*candidates(config), longer_rounds(32)]
    assert [one.name for one in tried] == ["one machine", "one machine with batches of 256", "LLCG", "LLCG, K = 32"]
    of_user = ["train.local_batch_size=64", "partition=random"]
    configs = [load_config(one.settings(of_user)) for one in tried]
    assert [each.train.local_batch_size for each in configs] == [16, 64, 64, 64]  # rank 0 alone takes those of all
    assert [each.partition.method for each in configs[2:]] == ["random", "random"]
    assert (configs[3].algorithm.K, configs[3].algorithm.S) == (32, 4)
    assert [one.alone for one in candidates(load_config(["cluster.num_machines=1"]))] == [True]
