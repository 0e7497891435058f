"""Control and content in one message."""

import pytest
import torch

from llcg_dist.comm.envelope import Envelope
from llcg_dist.comm.ledger import Direction, Kind


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8])
@pytest.mark.parametrize("elements", [0, 1, 7])
def test_both_halves_lie_in_the_bytes_that_cross(dtype: torch.dtype, elements: int) -> None:
    sent, received = (Envelope(torch.zeros(3, dtype=torch.float64), elements, dtype, "cpu") for _ in range(2))
    sent.control.copy_(torch.tensor([1.5, -2.0, 1e300], dtype=torch.float64))
    sent.content.copy_(torch.arange(elements))
    received.bytes.copy_(sent.bytes)
    assert received.control.tolist() == [1.5, -2.0, 1e300]
    assert received.content.tolist() == list(range(elements))
    messages = list(received.messages(Kind.PARAMETERS, Direction.UP))
    assert sum(message.bytes for message in messages) == received.bytes.nbytes
    assert [message.kind for message in messages] == [Kind.PARAMETERS, Kind.CONTROL][elements == 0 :]


def test_content_may_come_alone() -> None:
    envelope = Envelope(torch.zeros(0, dtype=torch.int64), 4, torch.float32, "cpu")
    assert [message.kind for message in envelope.messages(Kind.GRADIENTS, Direction.UP)] == [Kind.GRADIENTS]
