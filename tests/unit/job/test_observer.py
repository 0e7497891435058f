"""Rows are written in the order of the rounds, whenever scores arrive; rounds wait for a full queue alone."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from llcg_dist.config.compose import load_config
from llcg_dist.job.observer import Observer
from llcg_dist.records.recorder import Recorder
from llcg_dist.stopwatch import Elapsed
from llcg_dist.training.scorer import Scored
from tests.helpers.round_results import evaluation, round_result
from tests.helpers.run_files import rows


class ByHand:
    """Evaluations that are done when the test says so; a model's score is how many went in before it, in tenths, or
    (falling) that below 1."""

    beside, peak_rss_mb = True, None

    def __init__(self) -> None:
        self.submitted = self.done = self.taken = 0
        self.waits = 0
        self.falling = False

    @property
    def busy(self) -> bool:
        return self.taken < self.submitted

    @property
    def full(self) -> bool:
        return self.submitted - self.taken == 2

    def submit(self, theta: Tensor) -> None:
        assert not self.full
        self.submitted += 1

    def take(self, wait: bool) -> Scored | None:
        if self.taken == self.done:
            if not wait:
                return None
            self.waits += 1
            self.done += 1
        self.taken += 1
        state = {"model": torch.tensor([float(self.taken)])}
        score = self.taken / 10
        return Scored(evaluation(1 - score if self.falling else score), Elapsed(0.1, 0.1), state)

    def finished_model(self, theta: Tensor) -> dict[str, Tensor]:
        return {}

    def class_results(self, state_dict: dict[str, Tensor]) -> dict[str, Any]:
        return {}


class Watched:
    """An observer of a run of 20 rounds, and what it has written."""

    def __init__(self, folder: Path, *overrides: str) -> None:
        config = load_config(["experiment=tiny", "logger=none", "num_rounds=20", *overrides])
        recorder = Recorder(config, folder)
        recorder.start()
        self.folder, self.evaluations = folder, ByHand()
        self.observer = Observer(config, self.evaluations, recorder, None, [[1] * 20])

    def record(self, *rounds: int) -> None:
        for round_ in rounds:
            self.observer.record(round_result(round_), {"warnings": []})

    @property
    def scores(self) -> list[float | None]:
        return [row["val_score"] for row in rows(self.folder)]

    @property
    def unrecorded(self) -> list[int]:
        return [result.round for result in self.observer.unrecorded]


def test_rows_wait_for_their_scores_and_rounds_for_a_full_queue(tmp_path: Path) -> None:
    run = Watched(tmp_path)
    run.record(1, 2)
    assert (run.scores, run.unrecorded, run.evaluations.waits) == ([], [1, 2], 0)
    run.record(3)  # waits for the first
    assert (run.scores, run.unrecorded, run.evaluations.waits) == ([0.1], [2, 3], 1)
    run.evaluations.done = 3
    run.record(4)
    assert (run.scores, run.unrecorded, run.evaluations.waits) == ([0.1, 0.2, 0.3], [4], 1)
    run.observer.settle()
    assert (run.scores, run.unrecorded, run.evaluations.waits) == ([0.1, 0.2, 0.3, 0.4], [], 2)
    assert torch.load(tmp_path / "best.pt")["model"].item() == 4


def test_a_round_without_scores_stays_behind_those_that_wait(tmp_path: Path) -> None:
    run = Watched(tmp_path, "evaluate.every=2")
    run.record(1, 2, 3, 4, 5)
    assert (run.scores, run.unrecorded) == ([None], [2, 3, 4, 5])
    run.evaluations.done = 1
    run.record(6)
    assert (run.scores, run.unrecorded, run.evaluations.waits) == ([None, 0.1, None], [4, 5, 6], 0)
    run.observer.settle()
    assert run.scores == [None, 0.1, None, 0.2, None, 0.3]


@pytest.mark.parametrize("finished", [0, 1])
def test_auto_scores_the_newest_when_it_is_free_and_always_the_last(tmp_path: Path, finished: int) -> None:
    run = Watched(tmp_path, "evaluate.every=auto")
    run.record(1, 2, 3)
    run.evaluations.done = finished
    run.record(4, 5, *range(6, 21))
    assert run.evaluations.waits == 0
    run.observer.settle()
    scored = [round_ for round_, score in enumerate(run.scores, start=1) if score is not None]
    assert scored == ([1, 4, 20] if finished else [1, 20])
