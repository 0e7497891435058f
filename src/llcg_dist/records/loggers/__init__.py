"""Experiment loggers behind one interface: TensorBoard, MLflow, Weights & Biases.

Only the server opens them, and only then are their libraries imported. metrics.jsonl is the record; a logger holds a
copy of it. Where a run is resumed, a logger is given the recorded rows again, so that it holds every round once.
"""

import importlib.util
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from llcg_dist.config.compare import flat_items
from llcg_dist.config.schema import Config
from llcg_dist.errors import PeerLostError, UserError
from llcg_dist.records.loggers.base import Logger, Points
from llcg_dist.records.loggers.comparison import compare

log = logging.getLogger(__name__)

MODULE_OF_LOGGER = {"tensorboard": "tensorboard", "mlflow": "mlflow", "wandb": "wandb"}
"""The Python module that each logger needs; the package's extras (pip install 'llcg_dist[...]') have the same names."""


def logger_names(setting: str | list[str]) -> list[str]:
    """The loggers that the setting `logger` names; `auto` is TensorBoard where it is installed."""
    if setting == "auto":
        return ["tensorboard"] if _installed("tensorboard") else []
    return [] if setting == "none" else [setting] if isinstance(setting, str) else list(setting)


def require_installed(config: Config) -> None:
    """Raises a UserError where a logger's library is missing."""
    for name in logger_names(config.logger):
        if not _installed(name):
            raise UserError(f"logger={name}: not installed; pip install 'llcg_dist[{name}]', or leave it out")


class Loggers:
    """All loggers of a run. A logger that raises is dropped with a warning, and training continues without it."""

    def __init__(self, config: Config, run_dir: Path, rows: Iterable[dict[str, Any]]) -> None:
        """`rows`: the rows that a resumed run has recorded before. Loggers are opened with the first round."""
        require_installed(config)
        self._config, self._run_dir = config, run_dir
        self._points = Points()
        self._earlier_points = [self._points.add(row) for row in rows]
        self._warnings: list[str] = []
        self._loggers: dict[str, Logger] | None = None

    def _start(self) -> None:
        settings = flat_items(self._config)
        self._loggers = {name: _build(name, self._run_dir) for name in logger_names(self._config.logger)}
        self._call_each(lambda logger: logger.start(settings, self._earlier_points))

    def round(self, row: dict[str, Any]) -> list[str]:
        """Logs a row; returns warnings about loggers that failed since the last round."""
        if self._loggers is None:
            self._start()
        point = self._points.add(row)
        self._call_each(lambda logger: logger.round(point))
        warnings, self._warnings = self._warnings, []
        return warnings

    def finish(self, summary: dict[str, Any]) -> None:
        """Logs the summary and closes the loggers."""
        if self._loggers:
            self._call_each(lambda logger: logger.finish(summary, compare(summary, self._run_dir)))

    def _call_each(self, call: Callable[[Logger], None]) -> None:
        """Calls every logger, and drops those that raise."""
        loggers = self._loggers or {}
        for name, logger in list(loggers.items()):
            try:
                call(logger)
            except PeerLostError:  # raised by the heartbeat in whatever code the main thread runs: not the logger's
                raise
            except Exception as error:  # the libraries' own errors, which have no common base class
                del loggers[name]
                reason = " ".join(str(error).split())[:200] or type(error).__name__
                self._warnings.append(f"logger={name} gave up ({reason}); metrics.jsonl goes on")
                log.warning(self._warnings[-1])


def _build(name: str, run_dir: Path) -> Logger:
    if name == "tensorboard":
        from llcg_dist.records.loggers.tensorboard import TensorBoard

        return TensorBoard(run_dir)
    if name == "mlflow":
        from llcg_dist.records.loggers.mlflow import MLflow

        return MLflow(run_dir)
    from llcg_dist.records.loggers.wandb import WandB

    return WandB(run_dir)


def _installed(name: str) -> bool:
    return importlib.util.find_spec(MODULE_OF_LOGGER[name]) is not None
