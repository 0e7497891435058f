"""The TensorBoard logger: curves by round, scores by bytes, settings, and the table that compares runs.

Shown by `tensorboard --logdir RUN_DIR`, or with a folder of runs.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import hparams

from llcg_dist.records.loggers.base import Point, Table

_THREAD_ENDS_WITHIN = 10.0
"""Seconds."""


class TensorBoard:
    """Event files in <run_dir>/tensorboard, which are rewritten from the recorded rows when a run is resumed."""

    def __init__(self, run_dir: Path) -> None:
        self._folder = run_dir / "tensorboard"

    def start(self, settings: dict[str, Any], earlier: Sequence[Point]) -> None:
        if self._folder.exists():
            shutil.rmtree(self._folder)
        self._writer = SummaryWriter(str(self._folder), flush_secs=10)
        hyperparameters = {
            key: value if type(value) in (bool, int, float) else str(value) for key, value in settings.items()
        }
        experiment, start, self._end = hparams(
            hyperparameters, {"best_val_score": None, "test_score_at_best_val": None}
        )
        for event in (experiment, start):
            self._writer._get_file_writer().add_summary(event)
        for point in earlier:
            self.round(point)

    def round(self, point: Point) -> None:
        with self._ended_with_its_thread():
            for key, value in point.scalars.items():
                self._writer.add_scalar(f"{_section(key)}/{key}", value, point.round)
            for key, value in point.scores.items():
                self._writer.add_scalar(f"by_bytes/{key}", value, point.sent)

    def finish(self, summary: dict[str, Any], comparison: Table) -> None:
        with self._ended_with_its_thread():
            for key in ("best_val_score", "test_score_at_best_val"):
                if summary[key] is not None:
                    self._writer.add_scalar(key, summary[key], summary["num_rounds"])
            self._writer.add_text("comparison", comparison.markdown(), summary["num_rounds"])
            self._writer._get_file_writer().add_summary(self._end)
            self._writer.close()

    @contextmanager
    def _ended_with_its_thread(self) -> Iterator[None]:
        """Where a file cannot be written, the writer's thread says so on stderr, and then ends: it is waited for, since
        Python aborts a process that exits while a daemon thread is printing."""
        try:
            yield
        except OSError:
            self._writer._get_file_writer().event_writer._async_writer._worker.join(_THREAD_ENDS_WITHIN)
            raise


def _section(key: str) -> str:
    """The section of a curve, by its column; TensorBoard groups curves by the text before the slash."""
    for word, section in {"score": "scores", "loss": "scores", "bytes": "bytes", "seconds": "seconds"}.items():
        if word in key:
            return section
    return "other"
