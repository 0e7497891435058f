"""The statistics behind docs/accuracy.md, by hand, and the grid that it comes from."""

import json
import math
from pathlib import Path

import pytest
from bench.accuracy import all_jobs
from bench.accuracy_tables import (
    PLUS,
    REFERENCE,
    RIVALS,
    Runs,
    difference,
    first_round,
    mean_std,
    paired,
    rounds_text,
    tables,
)

from llcg_dist.config import load_config


def test_paired_differences_by_hand() -> None:
    """Differences 1, 2 and 3: mean 2, standard deviation 1, standard error 1/sqrt(3); seed 9 has no partner."""
    one, other = {0: 11.0, 1: 22.0, 2: 33.0, 9: 5.0}, {2: 30.0, 0: 10.0, 1: 20.0}
    assert paired(one, other) == pytest.approx((2.0, 1 / math.sqrt(3), 3))
    assert difference(one, other) == "+2.0 ± 0.6"
    assert difference(one, {0: 1.0}) == "—"


def test_one_seed_does_not_pass_for_certainty() -> None:
    assert [mean_std(values) for values in ([], [1.25], [1.0, 2.0])] == ["—", "1.2 (one seed)", "1.5 ± 0.7"]


def test_rounds_to_a_score() -> None:
    rows = [{"round": r, "val_score": score} for r, score in enumerate([0.1, None, 0.5, 0.4, 0.6], start=1)]
    assert [first_round(rows, target) for target in (0.05, 0.5, 0.55, 0.7)] == [1, 3, 5, None]
    assert rounds_text({0: 3, 1: 4}) == "3.5"
    assert rounds_text({0: 3, 1: None}) == "3.0 (1 of 2 never)"
    assert rounds_text({0: None}) == "never"
    assert rounds_text({}) == "—"


def test_tables_from_records(tmp_path: Path) -> None:
    for method, scores in ((PLUS, (0.9, 0.8)), (REFERENCE, (0.91, 0.83))):
        for seed, score in enumerate(scores):
            folder = tmp_path / "core" / "cora" / method.replace(" ", "-") / str(seed)
            folder.mkdir(parents=True)
            summary = {"test_score_at_best_val": score, "best_val_score": score}
            (folder / "summary.json").write_text(json.dumps(summary))
            (folder / "metrics.jsonl").write_text(json.dumps({"round": 7, "val_score": score}) + "\n")
    text = tables(Runs(tmp_path))
    assert f"| {PLUS} | 85.0 ± 7.1 |" in text
    assert f"| {REFERENCE} | -2.0 ± 1.0 |" in text  # -1 and -3
    assert f"| {PLUS} | 7.0 (1 of 2 never) |" in text  # the target is 97 % of 87


@pytest.mark.full
def test_the_grid_composes_and_holds_every_rival() -> None:
    """One graph of one seed; every run has its own folder."""
    jobs = [job for job in all_jobs(Path("data"), 1, 1) if job.graph == "cora"]
    assert len({job.folder(Path("out")) for job in jobs}) == len(jobs)
    assert {PLUS, *RIVALS} <= {job.method for job in jobs if job.part == "core"}
    configs = [load_config(job.settings) for job in jobs]
    assert all(config.dataset.name == "Cora" for config in configs)


def test_nothing_is_tuned_for_one_graph() -> None:
    jobs = list(all_jobs(Path("data"), 1, 1))

    def settings(graph: str) -> list[set[str]]:
        return [{s for s in job.settings if not s.startswith("dataset")} for job in jobs if job.graph == graph]

    assert len({job.graph for job in jobs}) == 6
    assert all(settings(graph) == settings("cora") for graph in {job.graph for job in jobs})
