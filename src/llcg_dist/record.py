"""A run's records: config.yaml, metrics.jsonl, summary.json, wire.json, model.pt, best.pt; all the server's."""

import io
import json
import logging
import math
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from llcg_dist.comm.ledger import Ledger
from llcg_dist.config import Config, to_yaml
from llcg_dist.core.evaluate import Scores
from llcg_dist.data.store import make_folder, write_bytes, write_json
from llcg_dist.engine import RoundResult
from llcg_dist.errors import UserError

log = logging.getLogger(__name__)

Row = dict[str, Any]


class Recorder:
    """Writes a row per round as it is judged, and the summary and models at the end."""

    def __init__(self, config: Config, run_dir: Path, on_round: Callable[[Row], None] = lambda row: None) -> None:
        require_unused(run_dir)
        make_folder(run_dir, "run_dir")
        self.run_dir = run_dir
        self._config, self._on_round = config, on_round
        self._started = time.perf_counter()
        self.rows: list[Row] = []
        self.peak_rss_mb_machine: float | None = None
        write_bytes(run_dir / "config.yaml", to_yaml(config).encode())
        self._metrics = (run_dir / "metrics.jsonl").open("x")

    def round(self, result: RoundResult, scores: Scores | None, seconds_evaluate: float) -> None:
        reports, traffic = result.reports, result.traffic
        row: Row = {
            "round": result.round,
            "local_steps": max((report.steps for report in reports), default=0),
            "train_loss": _number(scores.train_loss if scores else None),
            "val_score": _number(scores.val if scores else None),
            "test_score": _number(scores.test if scores else None),
            "bytes_up": traffic.bytes_up,
            "bytes_down": traffic.bytes_down,
            "feature_bytes": traffic.feature_bytes,
            "gradient_bytes": traffic.gradient_bytes,
            "control_bytes": traffic.control_bytes,
            "exchanges": traffic.exchanges,
            "seconds_local": max((report.seconds_local for report in reports), default=0.0),
            "seconds_exchange": result.seconds_exchange,
            "seconds_correct": result.seconds_correct,
            "seconds_evaluate": seconds_evaluate,
            "seconds_round": result.seconds_round,
        }
        self.rows.append(row)
        self._metrics.write(json.dumps(row) + "\n")
        self._metrics.flush()
        if reports:
            self.peak_rss_mb_machine = max(report.peak_rss_mb for report in reports)
        losses = " ".join(f"{report.train_loss:.4f}" for report in reports)
        log.info(
            "round %d: val %s, steps %d, machine losses %s", result.round, row["val_score"], row["local_steps"], losses
        )
        self._on_round(row)

    def save_model(self, name: str, state: dict[str, Tensor]) -> None:
        """A plain state_dict. Through a buffer, because torch.save writes the file's own name into it."""
        buffer = io.BytesIO()
        torch.save(state, buffer)
        write_bytes(self.run_dir / name, buffer.getvalue())

    def finish(self, metric: str, paper_mb_per_round: float, peak_rss_mb_server: float, ledger: Ledger) -> Row:
        self._metrics.close()
        judged = [row for row in self.rows if row["val_score"] is not None]
        best = max(judged, key=lambda row: row["val_score"], default=None)
        last, rounds = self.rows[-1], len(self.rows)
        summary: Row = {
            "algorithm": self._config.algorithm.name,
            "dataset": self._config.dataset.name,
            "model": self._config.model.name,
            "num_machines": self._config.cluster.num_machines,
            "num_rounds": rounds,
            "seed": self._config.seed,
            "metric": metric,
            "batchnorm_stats": self._config.algorithm.batchnorm_stats,
            "best_val_score": best and best["val_score"],
            "test_score_at_best_val": best and best["test_score"],
            "final_val_score": last["val_score"],
            "final_test_score": last["test_score"],
            "final_train_loss": last["train_loss"],
            "local_steps_total": self._sum("local_steps"),
            "paper_mb_per_round": paper_mb_per_round,
            "mb_up_per_round": self._sum("bytes_up") / rounds / 1e6,
            "mb_down_per_round": self._sum("bytes_down") / rounds / 1e6,
            "feature_mb_per_round": self._sum("feature_bytes") / rounds / 1e6,
            "total_bytes": ledger.total_bytes(),
            "seconds_total": time.perf_counter() - self._started,
            "peak_rss_mb_server": peak_rss_mb_server,
            "peak_rss_mb_machine": self.peak_rss_mb_machine,
        }
        write_json(self.run_dir / "wire.json", ledger.as_json())
        write_json(self.run_dir / "summary.json", summary)
        return summary

    def _sum(self, key: str) -> Any:
        return sum(row[key] for row in self.rows)


def choose_run_dir(config: Config) -> Path:
    """One folder for all ranks: the server picks it and tells the others."""
    if config.run_dir:
        return Path(config.run_dir)
    now = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    return Path("runs") / f"{now}_{config.dataset.name}_{config.algorithm.name}"


def require_unused(run_dir: Path) -> None:
    if (run_dir / "metrics.jsonl").exists():
        raise UserError(f"run_dir={run_dir}: holds another run's records; choose another folder or remove it")


def _number(value: float | None) -> float | None:
    """JSON has no NaN: a score or loss that is not a finite number is written as null."""
    return value if value is not None and math.isfinite(value) else None
