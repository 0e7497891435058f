"""Live curves elsewhere than in metrics.jsonl: TensorBoard, MLflow, Weights & Biases, all behind one small interface.

Only the server opens them, and only then are their libraries imported. metrics.jsonl is the record; a logger is a copy
of it, made again from its rows where a run is resumed, so that no round stands anywhere twice.
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
"""The module that each logger needs; the extras of setup.cfg have the loggers' names."""


def chosen(setting: Any) -> list[str]:
    """The names of the loggers; `auto` is TensorBoard where it is installed."""
    if setting == "auto":
        return ["tensorboard"] if _installed("tensorboard") else []
    return [] if setting == "none" else [setting] if isinstance(setting, str) else list(setting)


def require_installed(config: Config) -> None:
    for name in chosen(config.logger):
        if not _installed(name):
            raise UserError(f"logger={name}: not installed; pip install 'llcg_dist[{name}]', or leave it out")


class Loggers:
    """All loggers of a run. One that fails is left out from then on, with a warning; training goes on."""

    def __init__(self, config: Config, run_dir: Path, rows: Iterable[dict[str, Any]]) -> None:
        """`rows` are those that an earlier start of the run has recorded. Nothing is opened before the first round."""
        require_installed(config)
        self._config, self._run_dir = config, run_dir
        self._points = Points()
        self._earlier = [self._points.add(row) for row in rows]
        self._warnings: list[str] = []
        self._loggers: dict[str, Logger] | None = None

    def _start(self) -> None:
        settings = flat_items(self._config)
        self._loggers = {name: _build(name, self._run_dir) for name in chosen(self._config.logger)}
        self._each(lambda logger: logger.start(settings, self._earlier))

    def round(self, row: dict[str, Any]) -> list[str]:
        """Returns what went wrong since the last round."""
        if self._loggers is None:
            self._start()
        point = self._points.add(row)
        self._each(lambda logger: logger.round(point))
        warnings, self._warnings = self._warnings, []
        return warnings

    def finish(self, summary: dict[str, Any]) -> None:
        if self._loggers:
            table = compare(summary, self._run_dir)
            self._each(lambda logger: logger.finish(summary, table))

    def _each(self, call: Callable[[Logger], None]) -> None:
        loggers = self._loggers or {}
        for name, logger in list(loggers.items()):
            try:
                call(logger)
            except PeerLostError:  # the heartbeat's, raised wherever the main thread is
                raise
            except Exception as error:  # whatever three libraries may raise
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
