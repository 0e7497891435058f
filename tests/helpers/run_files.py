"""Reads what a run leaves in its folder."""

import json
from pathlib import Path
from typing import Any

import torch

Row = dict[str, Any]
Message = dict[str, Any]


def rows(run_dir: Path) -> list[Row]:
    """metrics.jsonl, a row for each round."""
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def rows_without_times(run_dir: Path) -> list[Row]:
    """All columns but those that depend on speed, disks and seals (on loopback there are none): the rest is reproduced
    to the last bit."""
    timed = ("seconds", "cpu_", "cluster_seconds", "timeline", "checkpoint", "warnings", "sealing")
    return [{key: value for key, value in row.items() if not key.startswith(timed)} for row in rows(run_dir)]


def summary(run_dir: Path) -> dict[str, Any]:
    return json.loads((run_dir / "summary.json").read_text())


def wire(run_dir: Path) -> dict[str, Any]:
    return json.loads((run_dir / "wire.json").read_text())


def messages(run_dir: Path, phase: str = "round") -> list[Message]:
    """What wire.json counts of the rounds, or of the handshake, which loopback does not have."""
    return [message for message in wire(run_dir)["messages"] if message["phase"] == phase]


def bytes_crossed(run_dir: Path) -> dict[tuple[str, str], int]:
    """Bytes by kind and direction, over all rounds."""
    found: dict[tuple[str, str], int] = {}
    for message in messages(run_dir):
        key = message["kind"], message["direction"]
        found[key] = found.get(key, 0) + message["bytes"]
    return found


def model_bytes(run_dir: Path) -> bytes:
    """The file model.pt: equal for equal models."""
    return (run_dir / "model.pt").read_bytes()


def model_state(run_dir: Path) -> dict[str, torch.Tensor]:
    return torch.load(run_dir / "model.pt", weights_only=True)


def model_sizes(run_dir: Path) -> tuple[int, int]:
    """Bytes of all that is sent of a model in float32, and of BatchNorm's statistics among it."""
    floats = {name: 4 * tensor.numel() for name, tensor in model_state(run_dir).items() if tensor.is_floating_point()}
    return sum(floats.values()), sum(size for name, size in floats.items() if "running" in name)
