"""A machine that lies (studies/liars.py), over real processes and on loopback: it is named, and can be left out."""

import shutil
from pathlib import Path

import pytest

from llcg_dist.errors import TrainingError
from tests.helpers.run_files import model_bytes, rows, rows_without_times, summary
from tests.helpers.training import TINY, assert_loopback_equals_ranks, in_ranks, on_loopback

LLCG = ["algorithm.rho=1.1", "algorithm.S=1", "algorithm.batchnorm_stats=recalibrate"]
LIAR = [*TINY, "algorithm=own", "algorithm.target=studies.liars.LyingLlcg", *LLCG]
NOISE = [*TINY, "algorithm.clip=0.5", "algorithm.noise=0.1", "algorithm.exchange_dtype=int8"]
THREE = "cluster.num_machines=3"


def lying(lie: str) -> list[str]:
    return [*LIAR, f"algorithm.options.lie='{lie}'"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    jobs = {"llcg": TINY, "honest": lying("none"), "x1000": lying("x1000"), "noise": NOISE}
    return in_ranks(tmp_path_factory.mktemp("poisoning"), jobs)


def test_a_liar_over_real_processes_is_named_with_rank_and_part(runs: Path) -> None:
    assert_loopback_equals_ranks(runs, "x1000", *lying("x1000"))
    told = [row["warnings"] for row in rows(runs / "x1000")]
    assert told[:2] == [[], []]
    for warnings in told[2:]:
        assert len(warnings) == 1
        assert warnings[0].startswith("rank 2 (part 1) sent parameters ")
        assert warnings[0].endswith("used as it is")
    log = (runs / "x1000" / "logs" / "server.log").read_text()
    assert "round 3: rank 2 (part 1) sent parameters" in log
    assert summary(runs / "x1000")["screened_updates"] == 2


def test_nobody_else_is_named_and_nothing_changes(runs: Path) -> None:
    assert model_bytes(runs / "honest") == model_bytes(runs / "llcg")
    for row in rows(runs / "llcg"):
        assert (row["screened"], row["warnings"], len(row["update_lengths"])) == ([], [], 2)
    off = on_loopback(runs, "off", *TINY, "algorithm.screen=off")
    assert model_bytes(off) == model_bytes(runs / "llcg")


def test_noise_is_the_same_on_loopback_and_over_processes(runs: Path) -> None:
    assert_loopback_equals_ranks(runs, "noise", *NOISE)
    assert model_bytes(runs / "noise") != model_bytes(runs / "llcg")
    told = summary(runs / "noise")["privacy"]
    assert (told["rounds"], told["noise"], told["clip"]) == (4, 0.1, 0.5)
    assert summary(runs / "llcg")["privacy"] is None


def test_what_is_refused_leaves_no_trace_in_the_model(runs: Path) -> None:
    """Whatever part 1 sends from round 3 on: the same bits, which are those of the other two."""
    models = set()
    for lie in ("NaN", "x1e30", "x1000", "x-5"):
        run = on_loopback(runs, f"refused {lie}", *lying(lie), THREE, "algorithm.screen=refuse")
        models.add(model_bytes(run))
        left_out = [row["skipped_parts"] + [entry["part"] for entry in row["screened"]] for row in rows(run)]
        assert left_out == [[], [], [1], [1]]
    assert len(models) == 1


def test_who_made_the_model_diverge_is_named(runs: Path) -> None:
    """Not the correction, which began from a model that was lost already."""
    expected = r"round 3: the model diverged after rank 2 \(part 1\) sent parameters .* algorithm.screen=refuse"
    with pytest.raises(TrainingError, match=expected):
        on_loopback(runs, "diverged", *lying("x1e30"), THREE)


@pytest.mark.parametrize("aggregate", ["median", "trimmed_mean"])
def test_robust_aggregation_bounds_what_a_liar_does(runs: Path, aggregate: str) -> None:
    settings = [THREE, f"algorithm.aggregate={aggregate}", "algorithm.trim=0.34", "num_rounds=8"]
    scores = {
        lie: summary(on_loopback(runs, f"{aggregate} {lie}", *lying(lie), *settings))["final_train_loss"]
        for lie in ("none", "x1e30")
    }
    assert scores["x1e30"] < 3 * scores["none"]


@pytest.mark.parametrize("source", ["job", "secret"])
def test_a_resumed_run_has_the_same_noise(tmp_path: Path, source: str) -> None:
    settings = [*NOISE, f"algorithm.noise_seed={source}", "algorithm.rho=1.0", "num_rounds=5"]
    at_once = on_loopback(tmp_path, "at_once", *settings)
    secrets = sorted((at_once / "checkpoints").glob("*.noise"))
    assert [path.stat().st_mode & 0o777 for path in secrets] == [0o600] * (2 if source == "secret" else 0)
    (tmp_path / "grown" / "checkpoints").mkdir(parents=True)
    for path in secrets:
        shutil.copy(path, tmp_path / "grown" / "checkpoints")
    on_loopback(tmp_path, "grown", *settings, "num_rounds=2")
    grown = on_loopback(tmp_path, "grown", *settings)
    assert model_bytes(grown) == model_bytes(at_once)
    assert rows_without_times(grown) == rows_without_times(at_once)
    if source == "secret":
        assert model_bytes(on_loopback(tmp_path, "other", *settings)) != model_bytes(at_once)
