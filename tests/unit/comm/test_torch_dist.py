"""The links of a rank, without processes."""

from typing import Any

import pytest
import torch

from llcg_dist.comm.torch_dist import Cluster
from llcg_dist.errors import PeerLostError


class GoneLink:
    """A link whose other end is gone, which Gloo knows before anything is sent."""

    def send(self, message: Any) -> None:
        raise RuntimeError("Connection closed by peer\nframe #0: ...")

    receive = send


def test_a_link_that_is_known_to_be_gone_names_its_rank() -> None:
    """A killed machine's, between two rounds: not only a wait may find it, the next send may, too."""
    cluster = object.__new__(Cluster)
    links: Any = {2: GoneLink()}
    cluster._links, cluster._pending = links, []
    with pytest.raises(PeerLostError, match="^lost the connection to rank 2: Connection closed by peer$"):
        cluster.send(torch.zeros(1), 2)
    with pytest.raises(PeerLostError, match="^lost the connection to rank 2: Connection closed by peer$"):
        cluster.expect({2: torch.zeros(1)})
