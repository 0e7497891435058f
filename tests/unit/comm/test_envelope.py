"""A packet survives the buffer that it crosses in, whatever was there before."""

import gc
import weakref

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.comm.envelope import Envelope, Packet, control_bytes


@given(
    code=st.integers(0, 20),
    round_=st.integers(0, 2**62),
    durable=st.integers(0, 2**62),
    size=st.integers(0, 24),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.int8]),
)
def test_a_packet_is_read_as_it_was_written(
    code: int, round_: int, durable: int, size: int, dtype: torch.dtype
) -> None:
    envelope = Envelope(3, 96)
    envelope.write(Packet(9, 9, 9, torch.full((3,), 9.0, dtype=torch.float64), torch.full((96,), 9, dtype=torch.int8)))
    content = torch.arange(size).to(dtype)
    stats = torch.tensor([1.5, -2.0, 1e300], dtype=torch.float64)
    sent = envelope.write(Packet(code, round_, durable, stats, content))
    assert sent.nbytes == envelope.received_bytes == control_bytes(3) + content.nbytes
    read = envelope.read()
    assert (read.code, read.round, read.durable_round) == (code, round_, durable)
    assert read.stats is not None
    assert read.stats.tolist() == [1.5, -2.0, 1e300]
    if size:
        assert read.content is not None
        assert read.content.view(dtype).tolist() == content.tolist()
    else:
        assert read.content is None


def test_stats_of_an_earlier_packet_do_not_stay() -> None:
    envelope = Envelope(2, 8)
    envelope.write(Packet(0, 1, 0, torch.ones(2, dtype=torch.float64), None))
    envelope.write(Packet(0, 2, 0, None, None))
    read = envelope.read()
    assert read.stats is not None
    assert read.stats.tolist() == [0.0, 0.0]


def test_more_content_than_fits_is_refused() -> None:
    with pytest.raises(RuntimeError):
        Envelope(0, 8).write(Packet(0, 1, 0, None, torch.zeros(3)))


def test_a_buffer_that_nobody_uses_any_more_is_freed_at_once() -> None:
    """Not when Python looks for garbage: with models of 50 MB that was gigabytes later."""
    gc.disable()
    try:
        freed = weakref.ref(Envelope(0, 64))
        assert freed() is None
    finally:
        gc.enable()
