"""The byte columns of metrics.jsonl and their sum. Imports no other module of the package."""

from collections.abc import Mapping
from typing import Any

BYTES = ("bytes_up", "bytes_down", "gradient_bytes", "feature_bytes", "control_bytes")
"""Parameters up (to the server) and down, then gradients, features and control messages in both directions."""


def sent_bytes(row: Mapping[str, Any]) -> int:
    """All bytes that were sent in a round, of every kind and over all machines."""
    return sum(row[key] for key in BYTES)
