"""How vectors are written for the network: bounded errors, the same bits every time, nothing bad hidden."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from llcg_dist.comm.codec import BLOCK, CODECS, Codec
from llcg_dist.config.algorithm import ExchangeDtype

ROUNDED = ("bfloat16", "int8")


@st.composite
def vectors(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """A vector of any scale, and where it holds statistics (positive there: variances)."""
    size, seed = draw(st.integers(1, 3 * BLOCK)), draw(st.integers(0, 2**31))
    generator = torch.Generator().manual_seed(seed)
    magnitudes = 10.0 ** torch.randint(-6, 7, (size,), generator=generator)
    vector = torch.randn(size, generator=generator) * magnitudes
    statistics = torch.rand(size, generator=generator) < draw(st.sampled_from([0.0, 0.05, 1.0]))
    return torch.where(statistics, vector.abs(), vector), statistics


def crossed(codec: Codec, vector: Tensor) -> Tensor:
    message = encoded(codec, vector)
    assert (message.dtype, message.shape) == (codec.dtype, (codec.elements,))
    found = decoded(codec, message)
    assert (found.dtype, found.shape) == (torch.float32, vector.shape)
    return found


@given(vectors())
def test_float32_is_the_vector_itself(given: tuple[Tensor, Tensor]) -> None:
    vector, statistics = given
    assert torch.equal(crossed(CODECS["float32"](statistics), vector), vector)


@given(vectors())
def test_bfloat16_keeps_eight_bits_of_every_value(given: tuple[Tensor, Tensor]) -> None:
    vector, statistics = given
    found = crossed(CODECS["bfloat16"](statistics), vector)
    assert bool(((found - vector).abs() <= vector.abs() * 2**-8).all())


@given(vectors())
def test_int8_is_off_by_half_a_step_of_its_block_at_most(given: tuple[Tensor, Tensor]) -> None:
    vector, statistics = given
    found = crossed(CODECS["int8"](statistics), vector)
    for start in range(0, len(vector), BLOCK):
        block = slice(start, start + BLOCK)
        learned = ~statistics[block]
        values, off = vector[block][learned], (found - vector)[block][learned]
        if len(values):
            assert float(off.abs().max()) <= float(values.abs().max()) / 127 * 0.5001


@pytest.mark.parametrize("dtype", ROUNDED)
@given(vectors())
def test_statistics_keep_their_sign_and_eight_bits(dtype: str, given: tuple[Tensor, Tensor]) -> None:
    vector, statistics = given
    found = crossed(CODECS[dtype](statistics), vector)[statistics]
    assert bool((found >= 0).all())
    assert bool(((found - vector[statistics]).abs() <= vector[statistics] * 2**-8).all())


@pytest.mark.parametrize("dtype", ROUNDED)
@given(vectors())
def test_what_crossed_crosses_unchanged_and_repeats_itself(dtype: str, given: tuple[Tensor, Tensor]) -> None:
    vector, statistics = given
    codec = CODECS[dtype](statistics)
    assert torch.equal(encoded(codec, vector), encoded(codec, vector.clone()))
    if dtype == "bfloat16":
        found = crossed(codec, vector)
        assert torch.equal(crossed(codec, found), found)


@pytest.mark.parametrize("dtype", CODECS)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@given(vectors(), st.integers(0, 10**9))
def test_what_is_not_finite_stays_so(dtype: str, bad: float, given: tuple[Tensor, Tensor], place: int) -> None:
    vector, statistics = given
    vector[place % len(vector)] = bad
    found = crossed(CODECS[dtype](statistics), vector)
    assert not bool(found[place % len(vector)].isfinite())


@pytest.mark.parametrize("dtype", CODECS)
@pytest.mark.parametrize("value", [0.0, 1e-45, 1e-38, -1e-40])
def test_zeros_and_values_too_small_for_a_scale(dtype: str, value: float) -> None:
    found = crossed(CODECS[dtype](torch.zeros(5, dtype=torch.bool)), torch.full((5,), value))
    assert bool((found.abs() <= abs(value) * 1.01).all())


def test_int8_sends_little_more_than_a_quarter() -> None:
    """The model of the demo: 10,656 floats, 128 of them statistics."""
    statistics = torch.zeros(10_656, dtype=torch.bool)
    statistics[5000:5128] = True
    codec = CODECS["int8"](statistics)
    assert codec.elements == 4 * 11 + 2 * 128 + 10_656
    assert codec.elements / (4 * codec.size) < 0.27


@pytest.mark.parametrize("dtype", ROUNDED)
def test_pieces_of_a_long_vector_do_not_show(dtype: str) -> None:
    """Each block as if it crossed alone; the last one is not full."""
    size = 130 * BLOCK + 77
    vector = torch.randn(size, generator=torch.Generator().manual_seed(0))
    statistics = torch.arange(size) % 1001 == 5
    found = crossed(CODECS[dtype](statistics), vector)
    for start in (0, 127 * BLOCK, 128 * BLOCK, 130 * BLOCK):
        block = slice(start, start + BLOCK)
        assert torch.equal(found[block], crossed(CODECS[dtype](statistics[block]), vector[block]))


def test_the_setting_names_every_codec() -> None:
    assert set(ExchangeDtype) == set(CODECS)


def encoded(codec: Codec, vector: Tensor) -> Tensor:
    message = codec.empty_message()
    for piece in codec.pieces:
        codec.quantize(piece, vector[piece.span], message)
    return message


def decoded(codec: Codec, message: Tensor) -> Tensor:
    return torch.cat([codec.dequantize(piece, message) for piece in codec.pieces])
