"""What stands between a machine and its channel where updates are clipped and noised."""

import math
from pathlib import Path

import pytest
import torch

from llcg_dist.comm.messages import Finish, Measure, Train, Trained
from llcg_dist.errors import UserError
from llcg_dist.job.protected_machine import ProtectedMachine, noise_secret
from llcg_dist.training.protection import Protection
from tests.helpers.fake_machines import Adds

NONE = torch.zeros(4, dtype=torch.bool)


def machine(noise: float) -> ProtectedMachine:
    return ProtectedMachine(Adds(3.0), Protection(1.0, noise, NONE, 7, 2))


def test_updates_are_clipped_and_other_replies_are_not() -> None:
    clipped = machine(0).handle(Train(5, torch.zeros(4)))
    assert isinstance(clipped, Trained)
    assert (clipped.round, clipped.vector.tolist()) == (5, [0.5] * 4)
    assert clipped.stats is not None
    assert clipped.stats.train_loss == 5
    measured = machine(0).handle(Measure(5, torch.ones(4)))
    assert measured is not None
    assert measured.vector.tolist() == [3.0] * 4
    assert machine(0).handle(Finish(5)) is None


def test_with_noise_the_loss_is_not_told() -> None:
    reply = machine(0.1).handle(Train(5, torch.zeros(4)))
    assert reply is not None
    assert reply.stats is not None
    assert math.isnan(reply.stats.train_loss)
    assert reply.stats.steps == 3


def test_a_secret_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    secret = noise_secret(folder, 1)
    assert len(secret) == 32
    assert noise_secret(folder, 1) == secret != noise_secret(folder, 2)
    assert (folder / "part1.noise").stat().st_mode & 0o777 == 0o600
    (folder / "part1.noise").write_bytes(b"short")
    with pytest.raises(UserError, match="part1.noise: is no secret of 32 bytes"):
        noise_secret(folder, 1)
