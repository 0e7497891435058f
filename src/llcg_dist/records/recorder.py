"""Writes the records of a run, at the server: config.yaml, metrics.jsonl, summary.json, wire.json and models."""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from llcg_dist.comm.ledger import Ledger
from llcg_dist.config.compose import recorded_yaml
from llcg_dist.config.schema import Config
from llcg_dist.data.atomic_files import write_bytes, write_json
from llcg_dist.records.classes import CLASSES_FILE, write_class_results
from llcg_dist.records.cluster_time import EvaluatorQueue
from llcg_dist.records.columns import cluster_seconds
from llcg_dist.records.loggers import Loggers
from llcg_dist.records.loggers.base import ID_FILES
from llcg_dist.records.mirror import RecordsMirror
from llcg_dist.records.model_files import BEST_FILE, LAST_FILE, ModelFiles
from llcg_dist.records.row_file import RowFile
from llcg_dist.records.rows import RoundResult, Row, evaluation_columns, outputs_warning, round_row
from llcg_dist.records.starts import STARTS_FILE, read_starts, record_start
from llcg_dist.stopwatch import Elapsed
from llcg_dist.training.early_stop import EarlyStopping
from llcg_dist.training.evaluation import Evaluation
from llcg_dist.training.privacy import privacy_of

log = logging.getLogger(__name__)

_RESULTS = ("summary.json", "wire.json", CLASSES_FILE, LAST_FILE, BEST_FILE)
"""Files of a run that a start from nothing removes: they would be those of another."""


class Recorder:
    """Appends a row per round to metrics.jsonl; writes models as they are saved, and the summary at the end.

    A full disk does not end the training: rows and models that could not be written are kept in memory and written with
    the next ones, at the latest at the end of the run.
    """

    def __init__(
        self,
        config: Config,
        run_dir: Path,
        start_round: int = 0,
        elapsed: float = 0.0,
        constants: Row | None = None,
        rows: Sequence[Row] = (),
    ) -> None:
        """`start_round`: the round of the checkpoint that the run resumes from (0: none). `elapsed`: seconds of the run
        before that checkpoint. `constants`: metric, paper_mb_per_round, halo_bytes, fill_ratio, speeds of the summary,
        and under `start` what starts.json says besides. `rows`: of the rounds that are not recorded again."""
        self._config, self.run_dir, self._start_round = config, run_dir, start_round
        self._constants = constants or {}
        self._started = time.perf_counter() - elapsed
        self.rows = list(rows)
        self.models = ModelFiles(run_dir)
        self.stopping = EarlyStopping(config, self.rows)
        self._peak_rss_mb_machine: float | None = None
        self._loggers = Loggers(config, run_dir, self.rows)
        self.on_round: Callable[[Row], None] = lambda row: None
        """Called with every row, for the progress line."""
        self.mirror: RecordsMirror | None = None
        """Where a second copy of the records goes, if anywhere."""
        self.evaluator_queue: EvaluatorQueue | None = None
        """Where evaluations are made beside the rounds: what these wait for them in cluster time."""

    def start(self, over: bool = False) -> None:
        """Writes config.yaml, starts.json, and metrics.jsonl with the rows up to the checkpoint, without later ones.
        `over`: the user starts over (resume=fresh), and loggers begin a run of their own, too."""
        removed = (() if self._start_round else _RESULTS) + (ID_FILES if over else ())
        for name in removed:
            (self.run_dir / name).unlink(missing_ok=True)
        record_start(self.run_dir, self._constants.get("metric"), self._start_round, self._constants.get("start", {}))
        write_bytes(self.run_dir / "config.yaml", recorded_yaml(self._config).encode())
        self._metrics = RowFile(self.run_dir / "metrics.jsonl", self.rows)
        if self.mirror:
            for name in ("config.yaml", STARTS_FILE):
                self.mirror.put(name, (self.run_dir / name).read_bytes())
            self.mirror.put_rows(self.rows)

    @property
    def elapsed(self) -> float:
        """Seconds of the run so far, those before a resume included."""
        return time.perf_counter() - self._started

    @property
    def best_score(self) -> float | None:
        """The best validation score so far; None where no round was evaluated."""
        return max((row["val_score"] for row in self._evaluated_rows), default=None)

    @property
    def _evaluated_rows(self) -> list[Row]:
        return [row for row in self.rows if row["val_score"] is not None]

    def round(
        self, result: RoundResult, evaluation: Evaluation | None, evaluating: Elapsed, checkpoint_columns: Row
    ) -> None:
        """Records a round; `evaluation` is None where the model was not evaluated, `evaluating` what that took."""
        row = round_row(result, evaluation, evaluating, self._config.cluster.link_mbit)
        if self.evaluator_queue:
            is_last = result.round == self.stopping.last_round
            row["cluster_seconds"] = self.evaluator_queue.round(row["cluster_seconds"], evaluating.cpu, is_last)
        row |= evaluation_columns(self._config, evaluation) | checkpoint_columns
        if self.stopping.see(row):
            row["early_stop"] = self.stopping.reason
        if result.stats:
            peaks = [stats.peak_rss_mb for stats in result.stats]
            self._peak_rss_mb_machine = max(self._peak_rss_mb_machine or 0.0, *peaks)
        losses = " ".join(f"{stats.train_loss:.4f}" for stats in result.stats)
        log.info(
            "round %d: val %s, steps %d, machine losses %s", result.round, row["val_score"], row["local_steps"], losses
        )
        row["warnings"] += outputs_warning(evaluation) + self._loggers.round(row)
        self.rows.append(row)
        if self.mirror:
            self.mirror.put_rows(self.rows)
        self._try_to_write_rows()
        self.on_round(row)

    @property
    def best_round(self) -> int | None:
        """The round with the best validation score, whose model is best.pt; None where no round was evaluated."""
        best = max(self._evaluated_rows, key=lambda row: row["val_score"], default=None)
        return best["round"] if best else None

    def save_class_results(self, results: Row) -> None:
        """Writes classes.json."""
        write_class_results(self.run_dir / CLASSES_FILE, results)

    def sync(self) -> None:
        """Flushes metrics.jsonl to disk (fsync); called before a checkpoint, which relies on the earlier rows."""
        try:
            self._metrics.sync()
        except OSError as error:
            log.warning("metrics.jsonl: %s", error.strerror)

    def finish(self, peaks: Row, ledger: Ledger, audit: Row | None = None) -> Row:
        """Writes all pending rows and models, wire.json and summary.json; returns the summary.

        `peaks`: memory in MB by role. `audit`: verdict of the wire audit. Raises OSError where a file cannot be
        written; that file's earlier version is then intact.
        """
        self._metrics.append(self.rows)
        self._metrics.close()
        self.models.write()
        starts = read_starts(self.run_dir)
        wire, halo_bytes = ledger.as_json(), self._constants.get("halo_bytes", 0)
        summary = self._training_summary() | {
            "paper_mb_per_round": self._constants.get("paper_mb_per_round", 0.0),
            **self._mean_megabytes(),
            "halo_bytes": halo_bytes,
            "bytes_in_detail": wire["bytes_in_detail"],
            "total_bytes": ledger.total_bytes(),
            "seconds_total": self.elapsed,
            "cluster_seconds_total": cluster_seconds(self.rows),
            **{f"peak_rss_mb_{role}": peak for role, peak in peaks.items()},
            "peak_rss_mb_machine": self._peak_rss_mb_machine,
            "lost": [loss for start in starts for loss in start.get("lost", [])],
            "init_from": starts[0].get("init_from") if starts else None,
            "fill_ratio": self._constants.get("fill_ratio"),
            "speeds": self._constants.get("speeds"),
            "screened_updates": sum(len(row.get("screened", [])) for row in self.rows),
            "privacy": privacy_of(self._config.algorithm, len(self.rows)),
        }
        # The halo is copied with the parts before the first round: it is counted apart from the messages.
        verdict = {"audit": audit} if audit else {}
        write_json(self.run_dir / "wire.json", wire | {"halo_bytes": halo_bytes} | verdict)
        write_json(self.run_dir / "summary.json", summary)
        self._loggers.finish(summary)
        return summary

    def _training_summary(self) -> Row:
        """The job, its scores and its local steps."""
        best = max(self._evaluated_rows, key=lambda row: row["val_score"], default=None)
        last = self.rows[-1]
        return {
            "algorithm": self._config.algorithm.label,
            "dataset": self._config.dataset.name,
            "model": self._config.model.name,
            "num_machines": self._config.cluster.num_machines,
            "num_rounds": len(self.rows),
            "seed": self._config.seed,
            "metric": self._constants.get("metric"),
            "batchnorm_stats": self._config.algorithm.batchnorm_stats,
            "best_val_score": best and best["val_score"],
            "test_score_at_best_val": best and best["test_score"],
            "final_val_score": last["val_score"],
            "final_test_score": last["test_score"],
            "final_train_loss": last["train_loss"],
            "local_steps_total": self._sum("local_steps"),
            "stopped_early": self.stopping.reason is not None,
            "stop_reason": self.stopping.reason,
        }

    def _mean_megabytes(self) -> Row:
        """Megabytes of each kind of message, averaged over the rounds."""
        columns = {
            "mb_up_per_round": "bytes_up",
            "mb_down_per_round": "bytes_down",
            "feature_mb_per_round": "feature_bytes",
            "gradient_mb_per_round": "gradient_bytes",
            "control_mb_per_round": "control_bytes",
            "sealing_mb_per_round": "sealing_bytes",
        }
        return {name: self._sum(column) / len(self.rows) / 1e6 for name, column in columns.items()}

    def _sum(self, column: str) -> Any:
        return sum(row.get(column, 0) for row in self.rows)  # rows of an earlier version may lack one

    def _try_to_write_rows(self) -> None:
        """Writes pending rows; a failure becomes a warning of the last row."""
        try:
            self._metrics.append(self.rows)
        except OSError as error:
            self.rows[-1]["warnings"].append(f"metrics.jsonl not written: {error.strerror}")
            log.warning(self.rows[-1]["warnings"][-1])
