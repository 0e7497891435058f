"""Weights & Biases, as its own variables say: WANDB_MODE=offline writes files in <run_dir>/wandb for `wandb sync`."""

import json
import os
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import wandb

from llcg_dist.records.loggers.base import Point, Table

_LIMIT = 30.0
"""Seconds to wait for the server at the start."""


class WandB:
    """One W&B run per run directory; its id is kept in wandb.json, for a resumed run to go on in it."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir.resolve()

    def start(self, settings: dict[str, Any], earlier: Sequence[Point]) -> None:
        note = self._run_dir / "wandb.json"
        if not note.exists():
            note.write_text(json.dumps({"id": uuid.uuid4().hex[:12]}) + "\n")
        id_ = json.loads(note.read_text())["id"]
        offline = os.environ.get("WANDB_MODE") == "offline"
        if offline:  # files cannot be gone on in: they are written anew
            for folder in self._run_dir.glob(f"wandb/offline-run-*-{id_}"):
                shutil.rmtree(folder)
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "llcg_dist"),
            name=self._run_dir.name,
            id=id_,
            dir=self._run_dir,
            config=settings,
            resume=None if offline else "allow",
            settings=wandb.Settings(init_timeout=_LIMIT, silent=True, console="off"),
        )
        self._run.define_metric("sent_bytes", hidden=True)
        self._run.define_metric("by_bytes/*", step_metric="sent_bytes")
        self._next_round = self._run.step
        for point in earlier:
            self.round(point)

    def round(self, point: Point) -> None:
        if point.round < self._next_round:  # logged before the crash that the run was resumed after
            return
        by_bytes = {f"by_bytes/{key}": value for key, value in point.scores.items()}
        self._run.log(point.scalars | by_bytes | {"sent_bytes": point.sent}, step=point.round, commit=True)

    def finish(self, summary: dict[str, Any], comparison: Table) -> None:
        self._run.summary.update(summary)
        self._run.summary["comparison"] = comparison.markdown()
        self._run.finish()
