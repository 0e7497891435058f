"""The statistics behind docs/studies/accuracy.md, by hand, and the grid that it comes from."""

import json
import math
from pathlib import Path

import pytest
from studies.accuracy_grid import FIRST_SEED, PARTS, SPOT, all_jobs
from studies.accuracy_runs import Record, Runs
from studies.accuracy_tables import MUST_NOT_LOSE, PLUS, difference, mean_std, paired, rounds_text, tables

from llcg_dist.config.compose import load_config


def record(folder: Path, *scores: float, message: int = 0) -> Record:
    """A run whose rounds have these validation scores; the test score is one point less, with averaged statistics all
    are half."""
    folder.mkdir(parents=True)
    rows = [
        {
            "round": r,
            "val_score": score,
            "test_score": score - 0.01,
            "val_score_average": score / 2,
            "test_score_average": (score - 0.01) / 2,
        }
        for r, score in enumerate(scores, start=1)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "cost.json").write_text('{"cpu_seconds": 90}')
    messages = [{"phase": "handshake", "bytes": len(str(folder))}, {"phase": "round", "bytes": message}]
    (folder / "wire.json").write_text(json.dumps({"messages": messages}))
    return Record(folder)


def test_paired_differences_by_hand() -> None:
    """Differences 1, 2 and 3: mean 2, standard deviation 1, standard error 1/sqrt(3); seed 9 has no partner."""
    one, other = {0: 11.0, 1: 22.0, 2: 33.0, 9: 5.0}, {2: 30.0, 0: 10.0, 1: 20.0}
    assert paired(one, other) == pytest.approx((2.0, 1 / math.sqrt(3), 3))
    assert difference(one, other) == "+2.0 ± 0.6"
    assert difference(other, one) == "-2.0 ± 0.6 ▼"
    assert difference({0: 1.0, 1: 4.0}, {0: 2.0, 1: 4.0}) == "-0.5 ± 0.5"  # not by more than two standard errors
    assert difference(one, {0: 1.0}) == "+10.0 (one seed)"
    assert difference(one, {5: 1.0}) == "—"


def test_one_seed_does_not_pass_for_certainty() -> None:
    assert [mean_std(values) for values in ([], [1.25], [1.0, 2.0])] == ["—", "1.2 (one seed)", "1.5 ± 0.7"]


def test_rounds_to_a_score() -> None:
    assert rounds_text([3, 4]) == "3.5"
    assert rounds_text([3, None]) == "3.0 (1 of 2 never)"
    assert rounds_text([None]) == "never"
    assert rounds_text([]) == "—"


def test_a_record_has_the_scores_of_both_statistics(tmp_path: Path) -> None:
    found = record(tmp_path / "run", 0.1, 0.5, 0.4, 0.6, 0.6)
    assert (found.best_val("recalibrate"), found.best_val("average")) == pytest.approx((60, 30))
    assert (found.test("recalibrate"), found.test("average")) == pytest.approx((59, 29.5))
    assert [found.first_round("recalibrate", target) for target in (5, 50, 55, 70)] == [1, 2, 4, None]
    assert found.first_round("average", 25) == 2


def test_the_best_statistics_are_those_of_the_round(tmp_path: Path) -> None:
    """By validation score alone, whatever the test score; of equals the recalibrated ones."""
    rows = [(0.5, 0.1, 0.6, 0.2), (0.7, 0.3, 0.4, 0.9), (0.7, 0.5, 0.7, 0.6)]
    names = ("val_score", "test_score", "val_score_average", "test_score_average")
    text = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    (tmp_path / "metrics.jsonl").write_text(text)
    found = Record(tmp_path)
    assert found.scores("best") == [pytest.approx(pair) for pair in ((60, 20), (70, 30), (70, 50))]
    assert found.test("best") == pytest.approx(30)
    assert (found.first_round("best", 60), found.first_round("recalibrate", 60)) == (1, 2)


def test_tables_from_records(tmp_path: Path) -> None:
    for method, scores in ((PLUS, (0.90, 0.80)), ("single", (0.91, 0.83)), ("psgd_pa", (0.5, 0.5))):
        for seed, score in enumerate(scores):
            record(tmp_path / "core" / "cora" / method / str(seed), 0.2, score, message=seed)
    record(tmp_path / "axes" / "cora" / "K=2,_psgd_pa" / "0", 0.7)
    text = tables(Runs(tmp_path))
    assert f"| {PLUS}, best | — | 84.0 ± 7.1 | — |" in text
    assert "| single, best | — | -2.0 ± 1.0 | — |" in text  # -1 and -3, which is no more than two errors
    assert f"| {PLUS}, best | — | 2.0 (1 of 2 never) | — |" in text  # the target is 97 % of 87
    assert "| K=2, psgd_pa, best | — | 69.0 (one seed) | — | — |" in text
    assert "- against psgd_pa: above in 3 of 3 cells, " in text
    assert "equal psgd_pa's in 2 of 2 pairs of runs" in text
    assert "| core | 9.0 | 6 |" in text  # six runs of a minute and a half
    assert "Ingredients" not in text  # of which there are no runs


@pytest.mark.full
def test_the_grid_composes_and_holds_every_rival() -> None:
    """One graph of one seed; every run has its own folder and scores both kinds of statistics."""
    jobs = [job for job in all_jobs(Path("data"), 1, 1) if job.graph == "cora"]
    assert len({job.folder(Path("out")) for job in jobs}) == len(jobs)
    assert {PLUS, *MUST_NOT_LOSE, "ggs", "full_sync", "single"} <= {job.method for job in jobs if job.part == "core"}
    configs = [load_config(job.settings) for job in jobs]
    assert all(config.cluster.backend == "loopback" and config.dataset.name == "Cora" for config in configs)
    assert all(config.evaluate.both_statistics for config in configs)
    assert {config.algorithm.batchnorm_stats for config in configs} == {"recalibrate"}


def test_nothing_is_tuned_for_one_graph() -> None:
    jobs = all_jobs(Path("data"), 1, 1)
    assert {job.seed for job in jobs} == {FIRST_SEED}
    for part, graphs in PARTS.items():
        settings = [
            [{s for s in job.settings if not s.startswith("dataset")} for job in jobs if (job.part, job.graph) == cell]
            for cell in ((part, graph) for graph in graphs)
        ]
        assert settings[0]
        assert all(found == settings[0] for found in settings)


def test_what_runs_over_processes_is_of_the_core() -> None:
    assert set(SPOT) <= {(job.graph, job.method) for job in all_jobs(None, 1, 1) if job.part == "core"}
