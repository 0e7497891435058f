"""`llcg doctor --gpu`, as far as it can be seen without one: what it compares, and what a wrong device would be."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from llcg_dist.cli import doctor as command
from llcg_dist.data.graph import Graph
from llcg_dist.doctor import gpu
from llcg_dist.errors import UserError
from llcg_dist.models import products
from llcg_dist.models.registry import MODELS
from llcg_dist.models.sparse_kernels import sorted_transpose
from llcg_dist.sampling.sparse_matrix import SparseMatrix


def scrambled(matrix: SparseMatrix) -> SparseMatrix:
    back = sorted_transpose(matrix)
    return SparseMatrix(back.indptr, back.indices.flip(0), back.values, back.shape)


def test_a_device_that_computes_as_the_cpu_does_agrees() -> None:
    """The CPU itself."""
    rows = gpu.compare("cpu")
    assert [row.model for row in rows] == list(MODELS)
    assert all(row.agrees and row.step == row.logits == 0 for row in rows)


@pytest.mark.parametrize(("kernel", "agrees"), [(sorted_transpose, True), (scrambled, False)])
def test_the_kernel_of_gpus_agrees_and_a_wrong_one_does_not(
    kernel: Callable[[SparseMatrix], SparseMatrix], agrees: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device named `other` is the CPU with another transpose."""
    steps, right = gpu._step, products.transposed

    def step(name: str, graph: Graph, device: str, on_device: bool = False) -> Tensor:
        monkeypatch.setattr(products, "transposed", kernel if device == "other" else right)
        return steps(name, graph, "cpu", on_device)

    monkeypatch.setattr(gpu, "MODELS", {name: MODELS[name] for name in ("sage", "gcn", "appnp")})
    monkeypatch.setattr(gpu, "_step", step)
    monkeypatch.setattr(gpu, "_logits", lambda name, graph, device: torch.ones(1))
    assert [row.agrees for row in gpu.compare("other")] == [agrees] * 3


def test_without_a_gpu_it_says_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "num_gpus", lambda: 0)
    with pytest.raises(UserError, match=r"^--gpu: torch .* sees no GPU here; nothing was compared$"):
        command.doctor(["--gpu"])
    with pytest.raises(UserError, match="takes no other argument"):
        command.doctor(["--gpu", "model=gcn"])


@pytest.mark.parametrize(("step", "code"), [(1e-7, 0), (0.3, 1)])
def test_what_it_prints_and_returns(
    step: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "num_gpus", lambda: 2)
    monkeypatch.setattr(gpu, "compare", lambda device: [gpu.Comparison(device, "sage", step, 0.0)])
    assert command.doctor(["--gpu"]) == code
    printed = capsys.readouterr()
    assert "cuda:1" in printed.out
    assert ("2 GPU(s) agree with the CPU" in printed.out) == (code == 0)
    assert ("further from the CPU than 0.0001: sage on cuda:0, sage on cuda:1" in printed.err) == (code == 1)
