"""The Weights & Biases logger, configured by W&B's own environment variables.

With WANDB_MODE=offline it writes files to <run_dir>/wandb, for `wandb sync`.
"""

import json
import os
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import wandb

from llcg_dist.records.loggers.base import Point, Table, saved_id

_INIT_TIMEOUT_SECONDS = 30.0
"""How long to wait for the W&B server at the start."""


class WandB:
    """One W&B run per run directory; its id is kept in wandb.json, so that a resumed run continues it."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir.resolve()

    def start(self, settings: dict[str, Any], earlier: Sequence[Point]) -> None:
        id_file = self._run_dir / "wandb.json"
        if not id_file.exists():
            id_file.write_text(json.dumps({"id": uuid.uuid4().hex[:12]}) + "\n")
        id_ = saved_id(id_file, "id")
        offline = os.environ.get("WANDB_MODE") == "offline"
        if offline:  # an offline run's files cannot be appended to: they are rewritten
            for folder in self._run_dir.glob(f"wandb/offline-run-*-{id_}"):
                shutil.rmtree(folder)
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "llcg_dist"),
            name=self._run_dir.name,
            id=id_,
            dir=self._run_dir,
            config=settings,
            resume=None if offline else "allow",
            settings=wandb.Settings(init_timeout=_INIT_TIMEOUT_SECONDS, silent=True, console="off"),
        )
        self._run.define_metric("sent_bytes", hidden=True)
        self._run.define_metric("by_bytes/*", step_metric="sent_bytes")
        self._next_round = self._run.step
        for point in earlier:
            self.round(point)

    def round(self, point: Point) -> None:
        if point.round < self._next_round:  # logged before the run was resumed
            return
        by_bytes = {f"by_bytes/{key}": value for key, value in point.scores.items()}
        self._run.log(point.scalars | by_bytes | {"sent_bytes": point.sent}, step=point.round, commit=True)

    def finish(self, summary: dict[str, Any], comparison: Table) -> None:
        self._run.summary.update(summary)
        self._run.summary["comparison"] = comparison.markdown()
        self._run.finish()
