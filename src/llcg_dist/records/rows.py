"""A round's result, and the row of metrics.jsonl that is made of it."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from llcg_dist.comm.ledger import Traffic
from llcg_dist.comm.messages import TrainStats
from llcg_dist.config.facts import kinds_scored
from llcg_dist.config.schema import BEST, Config
from llcg_dist.errors import UserError
from llcg_dist.training.evaluation import Evaluation

Row = dict[str, Any]


@dataclass(frozen=True)
class RoundResult:
    """What a round leaves behind for the records."""

    round: int
    theta: Tensor
    stats: list[TrainStats]
    """Of every machine, in part order."""
    skipped_parts: list[int]
    traffic: Traffic
    seconds_exchange: float
    seconds_correct: float
    seconds_round: float
    notes: dict[str, Any] = field(default_factory=dict)
    """Further columns of the round's record: what was measured, what was chosen and why."""


def round_row(result: RoundResult, evaluation: Evaluation | None, seconds_evaluate: float) -> Row:
    """What every round records: steps, scores, bytes, seconds, and the notes of the round."""
    stats, traffic = result.stats, result.traffic
    row: Row = {
        "round": result.round,
        "local_steps": max((of_machine.steps for of_machine in stats), default=0),
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
        "seconds_local": max((of_machine.seconds_local for of_machine in stats), default=0.0),
        "seconds_exchange": result.seconds_exchange,
        "seconds_correct": result.seconds_correct,
        "seconds_evaluate": seconds_evaluate,
        "seconds_round": result.seconds_round,
        "skipped_parts": result.skipped_parts,
    }
    return row | {name: _number(value) if isinstance(value, float) else value for name, value in result.notes.items()}


def statistics_columns(config: Config, evaluation: Evaluation | None) -> Row:
    """Columns for BatchNorm's statistics: the kind that was chosen, where there is a choice, and the scores of every
    kind but that of the setting."""
    setting, row = config.algorithm.batchnorm_stats, Row()
    if setting == BEST:
        row["batchnorm_stats"] = evaluation.kind if evaluation else None
    kinds = kinds_scored(config)
    for kind in kinds:
        if kind != setting and len(kinds) > 1:
            of_kind = evaluation.of_kind[kind] if evaluation else None
            row[f"val_score_{kind}"] = _number(of_kind.val if of_kind else None)
            row[f"test_score_{kind}"] = _number(of_kind.test if of_kind else None)
    return row


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


def row_line(row: Row) -> str:
    return json.dumps(row) + "\n"


def _number(value: float | None) -> float | None:
    """JSON has no NaN: a score or loss that is not a finite number is written as null."""
    return value if value is not None and math.isfinite(value) else None
