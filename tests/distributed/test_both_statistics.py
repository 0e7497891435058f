"""One training, scored with both kinds of BatchNorm statistics, each with the bits that a run of its own would have."""

import json
from pathlib import Path

import pytest
import torch

from tests.helpers.run_files import model_bytes, model_state, rows, summary
from tests.helpers.training import TINY, on_loopback

SCORES = ("val_score", "test_score")
OTHER = {"average": "recalibrate", "recalibrate": "average"}


@pytest.mark.parametrize("method", ["llcg", "server_only", "full_sync"])
def test_the_other_columns_are_those_of_a_run_with_the_other_setting(tmp_path: Path, method: str) -> None:
    """Also: a run's own scores and models do not change, and nothing that is learned differs."""

    def run(name: str, kind: str, *more: str) -> Path:
        settings = [*TINY, f"algorithm={method}", f"algorithm.batchnorm_stats={kind}", "evaluate.every=2", *more]
        return on_loopback(tmp_path, name, *settings)

    apart = {kind: run(kind, kind) for kind in OTHER}
    for kind, other in OTHER.items():
        both = run(f"both_{kind}", kind, "evaluate.both_statistics=true")
        for found, mine, theirs in zip(rows(both), rows(apart[kind]), rows(apart[other]), strict=True):
            assert [found[key] for key in SCORES] == [mine[key] for key in SCORES]
            assert [found[f"{key}_{other}"] for key in SCORES] == [theirs[key] for key in SCORES]
        assert any(row["val_score"] != row[f"val_score_{other}"] for row in rows(both))
        for model in ("model.pt", "best.pt"):
            assert (both / model).read_bytes() == (apart[kind] / model).read_bytes()
    one, two = (model_state(folder) for folder in apart.values())
    assert {name for name in one if not torch.equal(one[name], two[name])} <= {n for n in one if "running" in n}


def test_the_best_kind_is_that_with_the_better_validation_score(tmp_path: Path) -> None:
    """Round by round: its scores, its columns, and the models that a user gets."""

    def run(kind: str) -> Path:
        settings = [*TINY, "algorithm=llcg", "algorithm.S=4", f"algorithm.batchnorm_stats={kind}", "num_rounds=8"]
        return on_loopback(tmp_path, kind, *settings)

    apart, best = {kind: run(kind) for kind in OTHER}, run("best")
    for folder in (*apart.values(), best):  # classes.json is of best.pt, with the statistics that it was saved with
        test = json.loads((folder / "classes.json").read_text())["test"]
        hits = sum(row[i] for i, row in enumerate(test["confusion"]))
        assert hits / test["nodes"] == pytest.approx(summary(folder)["test_score_at_best_val"], abs=1e-9)
    chosen = []
    for found, *of_each in zip(rows(best), *map(rows, apart.values()), strict=True):
        by_kind = dict(zip(apart, of_each, strict=True))
        for kind, row in by_kind.items():
            assert [found[f"{key}_{kind}"] for key in SCORES] == [row[key] for key in SCORES]
        chosen.append(found["batchnorm_stats"])
        assert found["val_score"] == max(row["val_score"] for row in of_each)
        assert [found[key] for key in SCORES] == [by_kind[chosen[-1]][key] for key in SCORES]
    assert set(chosen) == set(OTHER)
    assert model_bytes(best) == model_bytes(apart[chosen[-1]])
    kind = max(rows(best), key=lambda row: row["val_score"])["batchnorm_stats"]
    assert (best / "best.pt").read_bytes() == (apart[kind] / "best.pt").read_bytes()


def test_without_batchnorm_there_is_no_choice(tmp_path: Path) -> None:
    run = on_loopback(tmp_path, "plain", *TINY, "algorithm=llcg_plus", "model.norm=none")
    assert {row["batchnorm_stats"] for row in rows(run)} == {"recalibrate"}
    assert not {name for name in rows(run)[0] if name.startswith("val_score_")}
