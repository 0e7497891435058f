"""The two ends of an exchange: what is rounded away in one round arrives in a later one."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from llcg_dist.comm.codec import CODECS
from llcg_dist.comm.error_feedback import MachineCompressor, ServerCompressor, machine_compressor, server_compressor

SIZE = 1500
STATISTICS = torch.arange(SIZE) % 50 == 7
LEARNED = ~STATISTICS
ROUNDED = ("bfloat16", "int8")


def ends(dtype: str) -> tuple[ServerCompressor, MachineCompressor]:
    return server_compressor(dtype, STATISTICS), machine_compressor(dtype, STATISTICS)


def model(seed: int) -> Tensor:
    theta = torch.randn(SIZE, generator=torch.Generator().manual_seed(seed))
    return torch.where(STATISTICS, theta.abs(), theta)


def test_float32_remembers_nothing_and_changes_nothing() -> None:
    server, machine = ends("float32")
    for seed in range(3):
        theta, own = model(seed), model(seed + 100)
        arrived = server.compress(theta).clone()
        held = machine.decompress(arrived)
        arrived.zero_()  # the next message arrives where this one did
        assert torch.equal(held, theta)
        assert server.decompress(theta, [machine.compress(own)])[0] is own
        assert server.held is theta
    assert server.state() == machine.state() == {}


@pytest.mark.parametrize("dtype", ROUNDED)
@given(seed=st.integers(0, 10**6))
def test_the_server_knows_to_the_bit_what_the_machine_holds(dtype: str, seed: int) -> None:
    server, machine = ends(dtype)
    for r in range(4):
        held = machine.decompress(server.compress(model(seed + r)))
        assert torch.equal(server.held, held)
        assert bool((held[STATISTICS] >= 0).all())


@pytest.mark.parametrize("dtype", ROUNDED)
def test_a_model_that_stands_still_is_held_exactly_in_the_end(dtype: str) -> None:
    """Every message brings what the last one left out: seven bits more each time."""
    server, machine = ends(dtype)
    theta = model(0)
    off = []
    for _ in range(6):
        held = machine.decompress(server.compress(theta))
        off.append(float((held - theta)[LEARNED].abs().max()))
    assert off[0] > 1e-3
    assert off[1] < off[0] / 50
    assert off[-1] < 1e-6


@pytest.mark.parametrize("dtype", ROUNDED)
def test_no_update_is_lost_however_small_beside_the_others(dtype: str) -> None:
    """One parameter moves by a hundredth of what one step of its block can tell: the sum arrives all the same."""
    server, machine = ends(dtype)
    theta, small = torch.zeros(SIZE), 3
    step = torch.where(torch.arange(SIZE) % 2 == 0, 1.0, -1.0)
    step[small] = 1e-4
    total = 0.0
    for _ in range(200):
        held = machine.decompress(server.compress(theta))
        update = server.decompress(theta, [machine.compress(held + step)])[0]
        total += float(update[small] - theta[small])
    assert total == pytest.approx(200 * 1e-4, abs=0.5 / 127 * 1.01)


@pytest.mark.parametrize("dtype", ROUNDED)
def test_the_servers_exact_model_is_what_updates_are_added_to(dtype: str) -> None:
    """A machine that learns nothing sends nothing: the digits that are under way to it stay in the server's model."""
    server, machine = ends(dtype)
    theta = model(1)
    held = machine.decompress(server.compress(theta))
    update = server.decompress(theta, [machine.compress(held)])[0]
    assert not torch.equal(held[LEARNED], theta[LEARNED])
    assert torch.equal(update[LEARNED], theta[LEARNED])
    assert torch.equal(update[STATISTICS], held[STATISTICS])


@pytest.mark.parametrize("dtype", ROUNDED)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_an_update_that_is_not_finite_is_seen_and_leaves_nothing_behind(dtype: str, bad: float) -> None:
    server, machine = ends(dtype)
    theta = model(2)
    held = machine.decompress(server.compress(theta))
    poisoned = held.clone()
    poisoned[11] = bad
    assert not bool(server.decompress(theta, [machine.compress(poisoned)])[0].isfinite().all())
    fresh = machine_compressor(dtype, STATISTICS)
    fresh.load_state(machine.state() | {"residual": torch.zeros(SIZE)})
    assert torch.equal(machine.compress(held + 0.1), fresh.compress(held + 0.1))


@pytest.mark.parametrize("dtype", CODECS)
def test_ends_that_take_over_a_state_go_on_with_the_same_bits(dtype: str) -> None:
    first, second = ends(dtype), ends(dtype)
    for r in range(6):
        if r == 3:
            second = ends(dtype)
            for end in (0, 1):
                second[end].load_state({name: vector.clone() for name, vector in first[end].state().items()})
        messages = [(server.compress(model(r)), server, machine) for server, machine in (first, second)]
        updates = [machine.compress(machine.decompress(message) + model(50 + r)) for message, _, machine in messages]
        assert torch.equal(messages[0][0], messages[1][0])
        assert torch.equal(*updates)


@pytest.mark.parametrize("dtype", ROUNDED)
def test_a_state_of_another_model_is_refused(dtype: str) -> None:
    for end in ends(dtype):
        with pytest.raises(ValueError, match=r"\[2\] for a model of 1500"):
            end.load_state({name: torch.zeros(2) for name in ("held", "residual")})
