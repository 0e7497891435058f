"""Real jobs for the parts of `make bench` that measure rounds and starts: `llcg train`, and what it left behind."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

LLCG = Path(sys.executable).with_name("llcg")
LIMIT = 600


@dataclass(frozen=True)
class Job:
    """A finished job: its records."""

    run_dir: Path
    command_at: float
    """When the command was given, in seconds since the epoch."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.run_dir / "metrics.jsonl").read_text().splitlines()]

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads((self.run_dir / "summary.json").read_text())

    def column(self, name: str, skip: int = 1) -> float:
        """Median of a column of metrics.jsonl, without the first rounds, which still warm up."""
        return statistics.median(row.get(name, 0.0) for row in self.rows[skip:])

    def seconds_per_round(self, skip: int = 1) -> float:
        """By the clock, from one round's first local step to the next one's: nothing in between is left out."""
        begins = self.begins(0)
        return statistics.median(b - a for a, b in zip(begins[skip:], begins[skip + 1 :], strict=False))

    def begins(self, part: int) -> list[float]:
        """When this part's machine began the local steps of each round."""
        lines = (self.run_dir / "logs" / f"part{part}.log").read_text().splitlines()
        return [_time_of(line) for line in lines if "local steps begin" in line]


def train(run_dir: Path, settings: Sequence[str]) -> Job:
    command = [str(LLCG), "train", *settings, f"run_dir={run_dir}"]
    started = time.time()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=LIMIT, env=dict(os.environ))
    return Job(run_dir, started)


def cut(settings: Sequence[str]) -> None:
    """Cuts the graph, so that no timed job has to."""
    subprocess.run([str(LLCG), "partition", *settings], check=True, stdout=subprocess.DEVNULL, timeout=LIMIT)


def _time_of(line: str) -> float:
    return datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f").timestamp()
