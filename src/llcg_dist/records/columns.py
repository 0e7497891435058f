"""Sums over columns of metrics.jsonl: bytes, cluster time. Imports no other module of the package."""

from collections.abc import Mapping, Sequence
from typing import Any

BYTES = ("bytes_up", "bytes_down", "gradient_bytes", "feature_bytes", "control_bytes")
"""Parameters up (to the server) and down, then gradients, features and control messages in both directions. What
sealing adds to them has a column of its own, `sealing_bytes`: the methods are compared without it."""


def sent_bytes(row: Mapping[str, Any]) -> int:
    """All bytes that were sent in a round, of every kind and over all machines; without frames and seals."""
    return sum(row[key] for key in BYTES)


def cluster_seconds(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """What these rounds would take with a core for each rank; None where a row of an earlier version does not say."""
    seconds = [row.get("cluster_seconds") for row in rows]
    return None if None in seconds else float(sum(value for value in seconds if value is not None))
