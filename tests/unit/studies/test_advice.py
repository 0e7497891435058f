"""The grid of studies/advice.py and how it judges, from runs made by hand."""

import json
from pathlib import Path

import pytest
from studies.advice import ASKED, ONE, grid, judged
from studies.advice_graphs import graphs
from studies.timed_runs import TimedRun

from llcg_dist.config.compose import load_config
from tests.helpers.raw_files import real_data


def run(folder: Path, seconds: float, *scores: float) -> TimedRun:
    """Rounds of so many seconds on one machine, with these validation scores."""
    folder.mkdir()
    rows = [
        {"round": r, "val_score": score, "cpu_local_by_part": [seconds], "cpu_correct": 0.0}
        for r, score in enumerate(scores, start=1)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    kinds = ("best_val_score", "test_score_at_best_val", "final_val_score", "final_test_score")
    (folder / "summary.json").write_text(json.dumps({"algorithm": "single"} | dict.fromkeys(kinds, max(scores))))
    return TimedRun(folder)


def test_the_advice_is_judged_by_the_best_of_the_grid(tmp_path: Path) -> None:
    timed = {
        f"{ONE}, B": run(tmp_path / "one", 1.0, 0.5, 0.8, 0.9),
        "LLCG": run(tmp_path / "llcg", 2.0, 0.88),
    }
    advised = run(tmp_path / "advised", 2.5, 0.88)
    row, holds = judged(timed, advised, {"chosen": "LLCG", "distribute": True})
    assert holds  # 2.5 s where the best takes 2
    assert row == ["87.3", "LLCG", "2.50", "LLCG", "2.00", "1.25", "yes"]
    slow = run(tmp_path / "slow", 2.7, 0.88)
    assert judged(timed, slow, {"chosen": "LLCG", "distribute": True})[0][-1] == "**no**"


def test_one_machine_is_the_right_answer_where_one_machine_wins(tmp_path: Path) -> None:
    timed = {f"{ONE}, B": run(tmp_path / "one", 1.0, 0.9), "LLCG": run(tmp_path / "llcg", 2.0, 0.9)}
    advised = run(tmp_path / "advised", 3.0, 0.9)
    assert judged(timed, advised, {"chosen": ONE, "distribute": False})[1]
    assert not judged(timed, advised, {"chosen": "LLCG", "distribute": True})[1]


@pytest.mark.full
def test_every_run_composes() -> None:
    for overrides in grid().values():
        load_config([*ASKED, *overrides, "cluster.backend=loopback"])


def test_eight_graphs(tmp_path: Path) -> None:
    data = real_data("Planetoid", tmp_path).parent
    found = graphs(data, tmp_path)
    assert len(found) == 8
    for settings in found.values():
        load_config([*settings, "cluster.backend=loopback"])
