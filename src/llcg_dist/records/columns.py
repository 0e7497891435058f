"""The columns of metrics.jsonl that more than one reader adds up. Imports nothing."""

from collections.abc import Mapping
from typing import Any

BYTES = ("bytes_up", "bytes_down", "gradient_bytes", "feature_bytes", "control_bytes")
"""Parameters up and down, and the other kinds in both directions."""


def sent_bytes(row: Mapping[str, Any]) -> int:
    """Everything that crossed in a round, of every kind, over all machines."""
    return sum(row[key] for key in BYTES)
