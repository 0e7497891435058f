"""The result of a round, and its row in metrics.jsonl."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from torch import Tensor

from llcg_dist.comm.ledger import Traffic
from llcg_dist.comm.messages import TrainStats
from llcg_dist.config.algorithm import BatchNormStats
from llcg_dist.config.schema import Config
from llcg_dist.errors import UserError
from llcg_dist.records.cluster_time import link_seconds
from llcg_dist.records.reading import rows_in_order
from llcg_dist.stopwatch import Elapsed
from llcg_dist.training.evaluation import Evaluation, scored_statistics

Row = dict[str, Any]


@dataclass(frozen=True)
class RoundResult:
    """The outcome of one training round, from which its row is made."""

    round: int
    theta: Tensor
    """The model [n] after the round's correction."""
    stats: list[TrainStats]
    """Steps, loss and time of every machine that took part, in part order."""
    skipped_parts: list[int]
    """Parts whose update was not finite and was left out of the average."""
    traffic: Traffic
    seconds_exchange: float
    seconds_correct: float
    seconds_round: float
    cpu_correct: float = 0.0
    """CPU seconds of what took seconds_correct."""
    cpu_round: float = 0.0
    """Seconds of the round with a core for each rank and an exchange that takes no time: the longest of the machines'
    local work and of what the server does meanwhile, and then its work on their replies and the correction."""
    timeline: dict[str, Any] = field(default_factory=dict)
    """[begin, end] of the server's phases and of every machine's work (`machines`), in seconds of the round."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Further columns of the row: diagnostics, lengths of updates, the S that was chosen, seconds of further phases."""
    warnings: list[str] = field(default_factory=list)
    """What the console says below the round."""
    average: Tensor | None = None
    """With evaluate.ema: the average [n] of this model and those before it."""

    @property
    def scored(self) -> Tensor:
        """The model [n] that is scored and saved."""
        return self.theta if self.average is None else self.average


def outputs_warning(evaluation: Evaluation | None) -> list[str]:
    """What the console says where a model has no scores, although its parameters are finite: running variances below 0,
    say, that a method of the user's own has made."""
    finite = evaluation is None or math.isfinite(evaluation.train_loss)
    return [] if finite else ["the model's outputs are not finite: it has no scores"]


def round_row(
    result: RoundResult, evaluation: Evaluation | None, evaluating: Elapsed, link_mbit: float | None = None
) -> Row:
    """The row of a round: steps, scores, bytes, seconds and the round's notes. `evaluation` is None where the model was
    not evaluated; `evaluating` is what that took. `link_mbit`: cluster.link_mbit."""
    stats, traffic = result.stats, result.traffic
    row: Row = {
        "round": result.round,
        "local_steps": max((machine.steps for machine in stats), default=0),
        "train_loss": _number(evaluation.train_loss if evaluation else None),
        "val_score": _number(evaluation.val if evaluation else None),
        "test_score": _number(evaluation.test if evaluation else None),
        "bytes_up": traffic.bytes_up,
        "bytes_down": traffic.bytes_down,
        "feature_bytes": traffic.feature_bytes,
        "gradient_bytes": traffic.gradient_bytes,
        "control_bytes": traffic.control_bytes,
        "exchanges": traffic.exchanges,
        "feature_id_bytes": traffic.feature_id_bytes,
        "feature_row_bytes": traffic.feature_row_bytes,
        "sealing_bytes": traffic.sealing_bytes,
        "seconds_local": max((machine.seconds_local for machine in stats), default=0.0),
        "seconds_local_by_part": _by_part(result, [machine.seconds_local for machine in stats]),
        "seconds_exchange": result.seconds_exchange,
        "seconds_correct": result.seconds_correct,
        "seconds_evaluate": evaluating.seconds,
        "seconds_round": result.seconds_round,
        "cpu_local_by_part": _by_part(result, [machine.cpu_local for machine in stats]),
        "cpu_correct": result.cpu_correct,
        "cpu_evaluate": evaluating.cpu,
        "cluster_seconds": result.cpu_round + link_seconds(vars(traffic), len(stats), link_mbit),
        "timeline": result.timeline,
        "skipped_parts": result.skipped_parts,
    }
    steps = [machine.steps for machine in stats]
    row |= {"local_steps_by_part": _by_part(result, steps)} if len(set(steps)) > 1 else {}
    return row | {name: _number(value) if isinstance(value, float) else value for name, value in result.notes.items()}


def _by_part(result: RoundResult, values: Sequence[float]) -> list[float | None]:
    """A value of every part; None where no machine was there to tell it."""
    by_part: list[float | None] = list(values)
    for part in silent_parts(result.notes):
        by_part.insert(part, None)
    return by_part


def silent_parts(columns: Mapping[str, Any]) -> list[int]:
    """Of a round, by its row or its notes: parts whose machines sent nothing in it, because they were gone or late."""
    return sorted({*columns.get("absent", []), *(int(part) for part in columns.get("late", {}))})


def evaluation_columns(config: Config, evaluation: Evaluation | None) -> Row:
    """What some settings have an evaluation say besides its scores."""
    return statistics_columns(config, evaluation) | error_columns(config, evaluation)


def statistics_columns(config: Config, evaluation: Evaluation | None) -> Row:
    """Columns for BatchNorm's running statistics: the kind that was chosen (with batchnorm_stats=best), and the scores
    with every kind that was evaluated besides the configured one."""
    setting, row = config.algorithm.batchnorm_stats, Row()
    if setting == BatchNormStats.best:
        row["batchnorm_stats"] = evaluation.kind if evaluation else None
    kinds = scored_statistics(config)
    for kind in kinds:
        if kind != setting and len(kinds) > 1:
            scores = evaluation.of_kind[kind] if evaluation else None
            row[f"val_score_{kind}"] = _number(scores.val if scores else None)
            row[f"test_score_{kind}"] = _number(scores.test if scores else None)
    return row


def error_columns(config: Config, evaluation: Evaluation | None) -> Row:
    """The standard errors of scores that are estimated from a sample of the nodes (evaluate.sample)."""
    if config.evaluate.sample == 1:
        return {}
    val, test = (evaluation.val_error, evaluation.test_error) if evaluation else (None, None)
    return {"val_score_error": _number(val), "test_score_error": _number(test)}


def read_rows(run_dir: Path, last_round: int) -> list[Row]:
    """Rows 1..last_round of metrics.jsonl, up to the first line that is torn or out of order."""
    if not last_round or not (run_dir / "metrics.jsonl").exists():
        return []
    return list(takewhile(lambda row: row["round"] <= last_round and _is_row(row), rows_in_order(run_dir)))


def require_rows(rounds: int, rows: Sequence[Row], run_dir: Path) -> None:
    """Raises UserError where one of the first `rounds` rounds has no row."""
    if len(rows) < rounds:
        missing = f"{run_dir / 'metrics.jsonl'}: round {len(rows) + 1} is missing"
        raise UserError(f"{missing}; put the file back, choose another run_dir, or use resume=fresh")


def _is_row(row: Row) -> bool:
    """Whether a row has what a run goes on from."""
    integers = ("local_steps", "bytes_up", "bytes_down", "feature_bytes", "gradient_bytes", "control_bytes")
    return (
        all(isinstance(row.get(key), int) for key in integers)
        and all(row.get(key) is None or isinstance(row[key], float) for key in ("val_score", "test_score"))
        and {"val_score", "test_score", "train_loss"} <= row.keys()
    )


def row_line(row: Row) -> str:
    """A row as a line of metrics.jsonl."""
    return json.dumps(row) + "\n"


def _number(value: float | None) -> float | None:
    """JSON has no NaN: a score or loss that is not a finite number is written as null."""
    return value if value is not None and math.isfinite(value) else None
