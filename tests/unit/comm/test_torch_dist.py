"""The links of a rank, without processes."""

from typing import Any

import pytest
import torch

from llcg_dist.comm.frame import FrameBuffer, Label
from llcg_dist.comm.ledger import Kind, Ledger
from llcg_dist.comm.torch_dist import Cluster
from llcg_dist.errors import PeerLostError

LOST = r"^lost the connection to rank 2 \(part 1\): Connection closed by peer$"


class GoneLink:
    """A link whose other end is gone, which Gloo knows before anything is sent."""

    part = None

    def send(self, *message: Any) -> None:
        raise RuntimeError("Connection closed by peer\nframe #0: ...")

    receive = send


def test_a_link_that_is_known_to_be_gone_names_its_rank() -> None:
    """A killed machine's, between two rounds: not only a wait may find it, the next send may, too."""
    cluster = object.__new__(Cluster)
    links: Any = {2: GoneLink()}
    cluster._links, cluster._pending, cluster.rank, cluster.seal_bytes = links, [], 0, 0
    cluster.ledger, cluster.received_bytes = Ledger(frozenset()), 0
    cluster.name_parts({1: 0, 2: 1})
    with pytest.raises(PeerLostError, match=LOST):
        cluster.send(torch.zeros(1), [2], Label(Kind.CONTROL))
    with pytest.raises(PeerLostError, match=LOST):
        cluster.expect({2: FrameBuffer(4)})
