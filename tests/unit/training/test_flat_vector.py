"""A model as one flat vector and back."""

import pytest
import torch
from torch import nn

from llcg_dist.training.flat_vector import (
    contiguous_parameters,
    flatten,
    load_buffers,
    load_flat,
    other_buffers,
    state_dict_bytes,
)


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


# 3·4+4 and 4·2+2 weights, 4 of each of BatchNorm's weight, bias, running mean and running variance.
FLOATS = 16 + 4 * 4 + 10


def batches_and_variance(of: nn.Sequential) -> tuple[float, list[float]]:
    """BatchNorm's counter and running variance."""
    norm = of[1]
    assert isinstance(norm, nn.BatchNorm1d)
    assert norm.num_batches_tracked is not None
    assert norm.running_var is not None
    return norm.num_batches_tracked.item(), norm.running_var.tolist()


def test_every_float_takes_part_and_the_counter_does_not() -> None:
    assert flatten(model()).shape == (FLOATS,)
    assert state_dict_bytes(model()) == 4 * FLOATS + 8  # the paper counts BatchNorm's int64 counter too


def test_the_order_is_the_state_dicts() -> None:
    values = [tensor for tensor in model().state_dict().values() if tensor.is_floating_point()]
    assert torch.equal(flatten(model()), torch.cat([tensor.reshape(-1) for tensor in values]))


def test_round_trip_fills_statistics_and_leaves_the_counter() -> None:
    target = model()
    target(torch.randn(5, 3))  # the counter becomes 1
    theta = torch.arange(float(FLOATS))
    load_flat(target, theta)
    assert torch.equal(flatten(target), theta)
    assert batches_and_variance(target) == (1, [28.0, 29.0, 30.0, 31.0])
    assert next(target.parameters()).requires_grad


def test_flat_vector_is_a_copy() -> None:
    source = model()
    theta = flatten(source)
    before = theta.clone()
    with torch.no_grad():
        next(source.parameters()).zero_()
    assert torch.equal(theta, before)
    load_flat(source, theta)
    theta.zero_()
    assert torch.equal(flatten(source), before)


@pytest.mark.parametrize("size", [0, FLOATS - 1, FLOATS + 1])
def test_wrong_size_is_refused_and_nothing_is_written(size: int) -> None:
    target = model()
    before = flatten(target)
    with pytest.raises(ValueError, match=f"{size} values for a model of {FLOATS}"):
        load_flat(target, torch.zeros(size))
    assert torch.equal(flatten(target), before)


def test_a_model_with_contiguous_parameters_is_its_vector() -> None:
    source, twin = model(), model()
    vector = contiguous_parameters(source)
    assert torch.equal(vector, flatten(twin))
    for one in (source, twin):
        optimizer = torch.optim.Adam(one.parameters(), fused=True)
        one(torch.arange(15.0).reshape(5, 3)).square().sum().backward()  # moves BatchNorm's statistics
        optimizer.step()
    torch.testing.assert_close(vector, flatten(twin))
    assert not torch.equal(vector, flatten(model()))
    vector.copy_(torch.arange(float(FLOATS)))
    assert torch.equal(flatten(source), torch.arange(float(FLOATS)))
    assert batches_and_variance(source) == (1, [28.0, 29.0, 30.0, 31.0])


class Remembers(nn.Module):
    """Keeps what the last forward pass was given, which has no part in a state_dict, and how many there were."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.register_buffer("last", None, persistent=False)
        self.register_buffer("seen", torch.tensor(0))
        self.seen: torch.Tensor
        self.last: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.last = x.clone()
        self.seen += 1
        return self.linear(x)


@pytest.mark.parametrize("rows_before", [0, 3, 5])
def test_buffers_that_a_forward_pass_replaces_are_loaded(rows_before: int) -> None:
    trained, fresh = nn.Sequential(Remembers()), nn.Sequential(Remembers())
    trained(torch.ones(3, 2))
    if rows_before:
        fresh(torch.zeros(rows_before, 2))
    load_buffers(fresh, other_buffers(trained))
    assert {name: buffer.tolist() for name, buffer in fresh.named_buffers()} == {"0.last": [[1, 1]] * 3, "0.seen": 1}
    with pytest.raises(KeyError):
        load_buffers(nn.Sequential(nn.Linear(2, 2)), other_buffers(trained))
