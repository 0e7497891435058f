"""Steps off the CPU: nothing is read back, each tensor of a batch is uploaded once, a round is downloaded in one copy.

On the meta device tensors have no numbers, so that whatever reads one back fails, and so does what mixes devices. On a
device of the tests' own (tests/helpers/toy_device.py) they have, and copies are counted.
"""

import inspect
import json
import sys
from types import ModuleType
from typing import Any

import pytest
import torch

from llcg_dist.models import products, sparse_kernels
from llcg_dist.training import trainer
from llcg_dist.training.flat_vector import flatten
from llcg_dist.training.full_forward import full_forward
from tests.helpers import devices
from tests.helpers.devices import GRAPH, NAMES, corrector_of, model_of, trainer_of
from tests.helpers.jobs import REPOSITORY, finish, start

CANNOT_BE_READ = (NotImplementedError, RuntimeError, ValueError)


@pytest.mark.parametrize("features_on_device", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_local_steps_on_a_device_without_numbers(name: str, features_on_device: bool) -> None:
    one = trainer_of(name, "meta", features_on_device)
    one.run_steps(flatten(model_of(name)), 1, 3)
    assert one._parameters.is_meta
    with pytest.raises(CANNOT_BE_READ):
        one.theta()


@pytest.mark.parametrize("name", NAMES)
def test_correction_steps_on_a_device_without_numbers(name: str) -> None:
    corrector = corrector_of(name, "meta")
    corrector.prefetch(1)
    corrector.trainer.run_steps(flatten(model_of(name)), 1, 2)


@pytest.mark.parametrize("recalibrate", [False, True])
@pytest.mark.parametrize("chunk", [1000, 20], ids=["whole", "chunks"])
@pytest.mark.parametrize("name", NAMES)
def test_evaluation_on_a_device_without_numbers(name: str, chunk: int, recalibrate: bool) -> None:
    logits = full_forward(GRAPH, model_of(name).to("meta"), chunk, recalibrate=recalibrate).logits()
    assert logits.is_meta
    assert logits.shape == (GRAPH.num_nodes, GRAPH.num_classes)


def mutated(module: ModuleType, right: str, wrong: str) -> dict[str, Any]:
    """The names of a module whose source has one piece replaced."""
    source = inspect.getsource(module)
    assert source.count(right) == 1
    names: dict[str, Any] = {"__name__": module.__name__}
    exec(compile(source.replace(right, wrong), "mutated", "exec"), names)
    return names


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("self._loss_sum += value.detach()", "self._loss_sum += value.detach().cpu()"),
        ("logits = self._model(batch.features, batch.blocks).float()", "logits = self._model(*read(batch)).float()"),
        ("self._optimizer.step()", "self._optimizer.step(); self._parameters.sum().item()"),
    ],
    ids=["loss", "features", "parameters"],
)
def test_a_step_that_reads_something_back_fails(right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = mutated(trainer, right, wrong)
    changed["read"] = lambda batch: (batch.features.cpu(), batch.blocks)
    monkeypatch.setattr(devices, "Trainer", changed["Trainer"])
    with pytest.raises(CANNOT_BE_READ):
        test_local_steps_on_a_device_without_numbers("sage", features_on_device=False)


def test_a_backward_pass_that_transposes_on_the_cpu_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "transposed", sparse_kernels._counted)
    with pytest.raises((*CANNOT_BE_READ, TypeError)):
        test_local_steps_on_a_device_without_numbers("sage", features_on_device=False)


def test_what_crosses_in_a_round_of_every_model() -> None:
    """In a process of its own: a backend stays registered."""
    outcome = finish(start([sys.executable, "-m", "tests.helpers.round_copies", "toy"], REPOSITORY))
    assert outcome.code == 0, outcome.err
    rows = [json.loads(line) for line in outcome.out.splitlines()]
    assert {row["model"] for row in rows} == {name for name in NAMES if name != "gat"}
    for row in rows:
        assert row["uploads"] == row["expected"], row
        assert row["downloads_in_steps"] == row["downloads_in_correction"] == 0, row
        assert row["downloads_of_round"] == 1, row
        assert row["difference"] < 1e-6 < row["moved"], row
        assert row["loss_difference"] < 1e-6, row
        assert row["evaluation_difference"] < 1e-6, row


def test_a_batch_is_uploaded_while_the_one_before_it_is_used() -> None:
    """Off the CPU the next one is drawn as soon as a step is queued; on the CPU not before it is needed."""
    ahead = {}
    for device in ("cpu", "meta"):
        one = trainer_of("sage", device)
        one.begin_round(flatten(model_of("sage")), 1)
        one.backward()
        one._on_device.begin_next()
        ahead[device] = one._on_device._coming
    assert ahead["cpu"] is None
    assert ahead["meta"] is not None
    assert all(tensor.device == torch.device("meta") for tensor in ahead["meta"].tensors())
