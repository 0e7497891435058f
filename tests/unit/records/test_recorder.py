"""The records of a run: rows as rounds end, the summary at the end, and a disk that is full for a while."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from llcg_dist.comm.ledger import CountedMessage, Direction, Kind, Ledger
from llcg_dist.config.compose import load_config
from llcg_dist.records.recorder import Recorder
from llcg_dist.stopwatch import Elapsed
from tests.helpers.round_results import evaluation, round_result
from tests.helpers.run_files import rows, summary, wire

CONFIG = load_config(["experiment=tiny", "logger=none", "seed=4"])


def started(folder: Path, **settings: Any) -> Recorder:
    recorder = Recorder(CONFIG, folder, **settings)
    recorder.start()
    return recorder


def ledger() -> Ledger:
    """Of 600 bytes of parameters."""
    made = Ledger(frozenset({Kind.PARAMETERS}))
    made.count(CountedMessage.of(torch.zeros(75), Kind.PARAMETERS, Direction.UP), 2)
    return made


def record(recorder: Recorder, round_: int, val: float | None) -> None:
    scores = None if val is None else evaluation(val, test=val / 4)
    recorder.round(round_result(round_), scores, Elapsed(0.3, 0.25), {"warnings": []})


def finish(recorder: Recorder) -> dict[str, Any]:
    return recorder.finish({"server": 500.5}, ledger())


def test_rows_are_written_as_rounds_end_and_the_summary_adds_them_up(tmp_path: Path) -> None:
    shown: list[int] = []
    constants = {"metric": "accuracy", "paper_mb_per_round": 3.5, "halo_bytes": 12}
    recorder = started(tmp_path, constants=constants)
    recorder.on_round = lambda row: shown.append(row["round"])
    for round_, val in enumerate([0.25, 0.75, None, 0.5], start=1):
        record(recorder, round_, val)
        assert [row["round"] for row in rows(tmp_path)] == shown == list(range(1, round_ + 1))
    assert recorder.best_score == 0.75
    assert finish(recorder) == summary(tmp_path)
    found = summary(tmp_path)
    expected = {
        "algorithm": "llcg",
        "dataset": "synthetic",
        "num_machines": 2,
        "num_rounds": 4,
        "seed": 4,
        "metric": "accuracy",
        "best_val_score": 0.75,
        "test_score_at_best_val": 0.1875,
        "final_val_score": 0.5,
        "final_test_score": 0.125,
        "final_train_loss": 1.25,
        "local_steps_total": 4 * 5,
        "paper_mb_per_round": 3.5,
        "mb_up_per_round": 100e-6,
        "mb_down_per_round": 200e-6,
        "feature_mb_per_round": 30e-6,
        "gradient_mb_per_round": 40e-6,
        "control_mb_per_round": 5e-6,
        "halo_bytes": 12,
        "total_bytes": 600,
        "cluster_seconds_total": 4 * 1.375,
        "peak_rss_mb_server": 500.5,
        "peak_rss_mb_machine": 400.0,
    }
    assert {key: found[key] for key in expected} == pytest.approx(expected)
    assert (wire(tmp_path)["total_bytes"], wire(tmp_path)["halo_bytes"]) == (600, 12)


def test_a_run_without_scores_has_none_in_its_summary(tmp_path: Path) -> None:
    recorder = started(tmp_path)
    record(recorder, 1, None)
    finish(recorder)
    scores = ("best_val_score", "test_score_at_best_val", "final_val_score", "final_train_loss")
    assert [summary(tmp_path)[key] for key in scores] == [None] * 4


def test_a_run_that_goes_on_drops_the_rows_after_its_checkpoint(tmp_path: Path) -> None:
    first = started(tmp_path)
    for round_ in (1, 2, 3):
        record(first, round_, 0.1 * round_)
    again = started(tmp_path, start_round=2, rows=rows(tmp_path)[:2])
    assert [row["round"] for row in rows(tmp_path)] == [1, 2]
    record(again, 3, 0.9)
    assert [row["val_score"] for row in rows(tmp_path)] == [0.1, 0.2, 0.9]


def test_a_full_disk_is_told_in_the_row_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = started(tmp_path)
    record(recorder, 1, 0.1)

    class Full:
        """A file that takes half of what is written and then no more."""

        def __init__(self, file: Any) -> None:
            self._file = file

        def write(self, content: bytes) -> int:
            self._file.write(content[: len(content) // 2])
            self._file.flush()
            raise OSError(28, "No space left on device")

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

    with monkeypatch.context() as patch:
        patch.setattr(recorder._metrics, "_file", Full(recorder._metrics._file))
        record(recorder, 2, 0.2)
    with pytest.raises(json.JSONDecodeError):
        rows(tmp_path)
    record(recorder, 3, 0.3)
    assert [row["val_score"] for row in rows(tmp_path)] == [0.1, 0.2, pytest.approx(0.3)]
    assert [row["warnings"] for row in rows(tmp_path)] == [
        [],
        ["metrics.jsonl not written: No space left on device"],
        [],
    ]


def test_a_model_that_could_not_be_written_is_written_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, state = started(tmp_path), {"weight": torch.arange(3.0)}

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("llcg_dist.records.model_files.write_bytes", full)
        recorder.models.save("best.pt", state)
    assert not (tmp_path / "best.pt").exists()
    record(recorder, 1, 0.1)
    finish(recorder)
    assert torch.equal(torch.load(tmp_path / "best.pt", weights_only=True)["weight"], state["weight"])
