"""The models of a run on disk: model.pt of its last round, best.pt of the round with the best score."""

import io
import logging
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from llcg_dist.data.atomic_files import write_bytes
from llcg_dist.errors import first_line

log = logging.getLogger(__name__)

BEST_FILE, LAST_FILE = "best.pt", "model.pt"


class ModelFiles:
    """Plain state_dicts in the run directory. What a full disk does not take waits, and is written with the next."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._pending: dict[str, bytes] = {}
        self.best: dict[str, Any] | None = None
        """What best.pt has: {"round": of which round, "state": its state_dict}. A checkpoint has it too, so that a run
        goes on with the best of the rounds before, and not with that of one that it repeats."""

    def save_best(self, round_: int, state: dict[str, Tensor]) -> None:
        self.best = {"round": round_, "state": state}
        self.save(BEST_FILE, state)

    def load_best(self, best: dict[str, Any] | None) -> None:
        """Goes on with that of a checkpoint; None: no round was scored by then."""
        if best is None:
            (self._run_dir / BEST_FILE).unlink(missing_ok=True)
        else:
            self.save_best(best["round"], best["state"])

    def save(self, name: str, state: dict[str, Tensor]) -> None:
        """Through a buffer, because torch.save writes the name of the file into its content."""
        buffer = io.BytesIO()
        torch.save(state, buffer)
        self._pending[name] = buffer.getvalue()
        try:
            self.write()
        except OSError as error:
            log.warning("%s not written: %s", name, error.strerror)

    def saved(self, name: str) -> dict[str, Tensor] | None:
        """The state_dict in a file, or one that waits to be written; None where neither is."""
        try:
            content = self._pending.get(name) or (self._run_dir / name).read_bytes()
            return torch.load(io.BytesIO(content), weights_only=True)
        except Exception as error:  # a damaged archive raises almost anything
            log.warning("%s cannot be read: %s", name, first_line(error))
            return None

    def write(self) -> None:
        """Raises OSError where a file cannot be written; its earlier version is then intact."""
        for name in list(self._pending):
            write_bytes(self._run_dir / name, self._pending[name])
            del self._pending[name]
