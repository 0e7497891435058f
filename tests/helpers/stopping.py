"""Stops a job on loopback in the middle, as a power cut would, and finds what it left."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from torch import Tensor

from llcg_dist.errors import TrainingError
from llcg_dist.job.checkpoint import CheckpointWriter
from llcg_dist.job.server import Server
from llcg_dist.records.rows import RoundResult
from tests.helpers.training import on_loopback


def stopped(root: Path, name: str, after: int, *overrides: str) -> Path:
    """A job in root/NAME that ends once row `after` is recorded: the next round was sent and is not saved."""
    meanwhile = Server.meanwhile

    def give_out(server: Server, previous: RoundResult | None, measured: Sequence[Tensor] | None, round_: int) -> None:
        meanwhile(server, previous, measured, round_)
        if round_ == after + 1:
            raise TrainingError("the power is gone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Server, "meanwhile", give_out)
        with pytest.raises(TrainingError, match="power"):
            on_loopback(root, name, *overrides)
    CheckpointWriter.finish_all()
    return root / name


def checkpoint_files(run_dir: Path, owner: str) -> list[Path]:
    """The files of `server` or `part0`, oldest round first."""
    return sorted((run_dir / "checkpoints").glob(f"{owner}-r*.pt"))


def lose(run_dir: Path, owner: str) -> None:
    for path in checkpoint_files(run_dir, owner):
        path.unlink()
