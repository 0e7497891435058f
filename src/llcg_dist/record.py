"""A run's records, all the server's: config.yaml, partition.json, metrics.jsonl, summary.json, wire.json, models."""

import io
import json
import logging
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from llcg_dist.comm.ledger import Ledger
from llcg_dist.config.compose import to_yaml
from llcg_dist.config.facts import kinds_scored
from llcg_dist.config.schema import BEST, Config
from llcg_dist.core.evaluate import Verdict
from llcg_dist.data.atomic_files import write_bytes, write_json
from llcg_dist.data.cut import edges_between_parts
from llcg_dist.data.store import Shard
from llcg_dist.engine import RoundResult
from llcg_dist.errors import UserError
from llcg_dist.loggers import Loggers

log = logging.getLogger(__name__)

Row = dict[str, Any]


class Recorder:
    """Writes a row per round as it is judged, and the summary and models at the end.

    A full disk does not end the training: what could not be written is kept and tried again, at the latest at the end.
    """

    def __init__(
        self,
        config: Config,
        run_dir: Path,
        start_round: int = 0,
        elapsed: float = 0.0,
    ) -> None:
        """`start_round` is the checkpoint that the run goes on from; rows after it are dropped."""
        self._config, self._run_dir = config, run_dir
        self.on_round: Callable[[Row], None] = lambda row: None
        """Told of every row, for the progress line."""
        self._started = time.perf_counter() - elapsed
        self._pending_models: dict[str, bytes] = {}
        self.rows = read_rows(run_dir, start_round)
        write_bytes(run_dir / "config.yaml", to_yaml(config).encode())
        write_bytes(run_dir / "metrics.jsonl", "".join(_line(row) for row in self.rows).encode())
        self._metrics = (run_dir / "metrics.jsonl").open("r+b")
        self._written = len(self.rows)
        self._end = self._metrics.seek(0, os.SEEK_END)
        self._peak_rss_mb_machine: float | None = None
        self._loggers = Loggers(config, run_dir, self.rows)

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self._started

    @property
    def best_score(self) -> float | None:
        return max((row["val_score"] for row in self.rows if row["val_score"] is not None), default=None)

    def round(self, result: RoundResult, scores: Verdict | None, seconds_evaluate: float, checkpoint: Row) -> None:
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
            "feature_id_bytes": traffic.feature_id_bytes,
            "feature_row_bytes": traffic.feature_row_bytes,
            "seconds_local": max((report.seconds_local for report in reports), default=0.0),
            "seconds_exchange": result.seconds_exchange,
            "seconds_correct": result.seconds_correct,
            "seconds_evaluate": seconds_evaluate,
            "seconds_round": result.seconds_round,
            "skipped_parts": result.skipped_parts,
        }
        row |= {name: _number(value) if isinstance(value, float) else value for name, value in result.notes.items()}
        row |= self._statistics_columns(scores)
        row |= checkpoint
        if reports:
            self._peak_rss_mb_machine = max(report.peak_rss_mb for report in reports)
        losses = " ".join(f"{report.train_loss:.4f}" for report in reports)
        log.info(
            "round %d: val %s, steps %d, machine losses %s", result.round, row["val_score"], row["local_steps"], losses
        )
        row["warnings"] += self._loggers.round(row)
        self.rows.append(row)
        self._try_to_write_rows()
        self.on_round(row)

    def _statistics_columns(self, scores: Verdict | None) -> Row:
        """The kind that was chosen, where there is a choice, and the scores of every kind but that of the setting."""
        setting, row = self._config.algorithm.batchnorm_stats, Row()
        if setting == BEST:
            row["batchnorm_stats"] = scores.kind if scores else None
        kinds = kinds_scored(self._config)
        for kind in kinds:
            if kind != setting and len(kinds) > 1:
                of_kind = scores.of_kind[kind] if scores else None
                row[f"val_score_{kind}"] = _number(of_kind.val if of_kind else None)
                row[f"test_score_{kind}"] = _number(of_kind.test if of_kind else None)
        return row

    def save_model(self, name: str, state: dict[str, Tensor]) -> None:
        """A plain state_dict. Through a buffer, because torch.save writes the file's own name into it."""
        buffer = io.BytesIO()
        torch.save(state, buffer)
        self._pending_models[name] = buffer.getvalue()
        try:
            self._write_models()
        except OSError as error:
            log.warning("%s not written: %s", name, error.strerror)

    def sync(self) -> None:
        """A checkpoint counts on the rows before it: they reach the disk first."""
        try:
            os.fsync(self._metrics.fileno())
        except OSError as error:
            log.warning("metrics.jsonl: %s", error.strerror)

    def finish(
        self,
        metric: str,
        paper_mb_per_round: float,
        peak_rss_mb_server: float,
        halo_bytes: int,
        ledger: Ledger,
        audit: Row | None = None,
    ) -> Row:
        """Raises OSError where the result cannot be written; files of an earlier result are then as they were."""
        self._write_rows()
        self._metrics.close()
        self._write_models()
        judged = [row for row in self.rows if row["val_score"] is not None]
        best = max(judged, key=lambda row: row["val_score"], default=None)
        last, rounds = self.rows[-1], len(self.rows)
        wire = ledger.as_json()
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
            "gradient_mb_per_round": self._sum("gradient_bytes") / rounds / 1e6,
            "control_mb_per_round": self._sum("control_bytes") / rounds / 1e6,
            "halo_bytes": halo_bytes,
            "bytes_in_detail": wire["bytes_in_detail"],
            "total_bytes": ledger.total_bytes(),
            "seconds_total": self.elapsed,
            "peak_rss_mb_server": peak_rss_mb_server,
            "peak_rss_mb_machine": self._peak_rss_mb_machine,
        }
        # The halo came with the parts, before any round: it is told apart from what crossed.
        verdict = {"audit": audit} if audit else {}
        write_json(self._run_dir / "wire.json", wire | {"halo_bytes": halo_bytes} | verdict)
        write_json(self._run_dir / "summary.json", summary)
        self._loggers.finish(summary)
        return summary

    def _sum(self, key: str) -> Any:
        return sum(row[key] for row in self.rows)

    def _try_to_write_rows(self) -> None:
        try:
            self._write_rows()
        except OSError as error:
            self.rows[-1]["warnings"].append(f"metrics.jsonl not written: {error.strerror}")
            log.warning(self.rows[-1]["warnings"][-1])

    def _write_rows(self) -> None:
        content = "".join(_line(row) for row in self.rows[self._written :]).encode()
        self._metrics.seek(self._end)
        self._metrics.truncate()  # half a line that an earlier try may have left
        self._metrics.write(content)
        self._metrics.flush()
        self._end += len(content)
        self._written = len(self.rows)

    def _write_models(self) -> None:
        for name in list(self._pending_models):
            write_bytes(self._run_dir / name, self._pending_models[name])
            del self._pending_models[name]


def record_partition(run_dir: Path, manifest: dict[str, Any], whole: Shard) -> None:
    """partition.json: what the parts look like, so that a report needs no store."""
    path = run_dir / "partition.json"
    if path.exists():
        return
    keys = ("partitioner", "seed", "num_parts", "num_nodes", "num_edges", "cut_edges", "label_counts", "parts")
    between = edges_between_parts(whole.graph, whole.extra["assignment"], manifest["num_parts"])
    write_json(path, {key: manifest[key] for key in keys} | {"edges_between_parts": between.tolist()})


def read_rows(run_dir: Path, last_round: int) -> list[Row]:
    """Rows 1..last_round (or one less: the last round may not be judged yet) of metrics.jsonl."""
    path = run_dir / "metrics.jsonl"
    rows: list[Row] = []
    if last_round and path.exists():
        for line in path.read_bytes().splitlines():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                break
            if not _is_row(row, len(rows) + 1) or row["round"] > last_round:
                break
            rows.append(row)
    if len(rows) < last_round - 1:
        raise UserError(
            f"{path}: round {len(rows) + 1} is missing; the run cannot be continued, choose another run_dir"
        )
    return rows


def _is_row(row: Any, round_: int) -> bool:
    counted = ("local_steps", "bytes_up", "bytes_down", "feature_bytes", "gradient_bytes", "control_bytes")
    return (
        isinstance(row, dict)
        and row.get("round") == round_
        and all(isinstance(row.get(key), int) for key in counted)
        and all(row.get(key) is None or isinstance(row[key], float) for key in ("val_score", "test_score"))
        and {"val_score", "test_score", "train_loss"} <= row.keys()
    )


def _line(row: Row) -> str:
    return json.dumps(row) + "\n"


def _number(value: float | None) -> float | None:
    """JSON has no NaN: a score or loss that is not a finite number is written as null."""
    return value if value is not None and math.isfinite(value) else None
