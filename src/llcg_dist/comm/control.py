"""Control messages over the links of a cluster, outside of the rounds: JSON objects for the handshake, a barrier."""

import json
from typing import Any

import torch
from torch import Tensor

from llcg_dist.comm.frame import FrameBuffer, Label
from llcg_dist.comm.ledger import CountedMessage, Direction, Kind, Phase
from llcg_dist.comm.torch_dist import Cluster
from llcg_dist.errors import ProtocolError

_LARGEST_JSON_BYTES = 1 << 20


def send_json(cluster: Cluster, content: dict[str, Any], rank: int) -> None:
    """A JSON object: its length, then its text."""
    encoded = torch.frombuffer(bytearray(json.dumps(content).encode()), dtype=torch.uint8)
    length = torch.tensor([len(encoded)])
    for tensor in (length, encoded):
        _send(cluster, tensor, rank)
    cluster.wait()


def receive_json(cluster: Cluster, rank: int) -> dict[str, Any]:
    length = _receive(cluster, torch.zeros(1, dtype=torch.int64), rank)
    if not 0 < int(length) <= _LARGEST_JSON_BYTES:
        raise ProtocolError(f"a handshake message of {int(length)} bytes from rank {rank}")
    encoded = _receive(cluster, torch.zeros(int(length), dtype=torch.uint8), rank)
    content = json.loads(bytes(encoded.tolist()))
    if not isinstance(content, dict):
        raise ProtocolError(f"a handshake message from rank {rank} is no JSON object")
    return content


def gather_json(cluster: Cluster, content: dict[str, Any]) -> list[dict[str, Any]]:
    """An object from every rank, by rank; empty at all but rank 0."""
    if cluster.rank:
        send_json(cluster, content, 0)
        return []
    return [content, *(receive_json(cluster, rank) for rank in cluster.peers)]


def barrier(cluster: Cluster, value: int = 0) -> int:
    """All ranks wait for each other, and each learns the least of their values: every machine tells its own to the
    server, which then answers all of them."""
    word = torch.tensor([value])
    if cluster.rank:
        _send(cluster, word, 0)
        word = _receive(cluster, word, 0)
    else:
        for rank in cluster.peers:
            theirs = _receive(cluster, word, rank)
            word = torch.minimum(word, theirs) if rank in cluster.peers else word  # it may be lost meanwhile
        for rank in cluster.peers:
            _send(cluster, word, rank)
    cluster.wait()
    return int(word)


def leave(cluster: Cluster, value: int = 0) -> int:
    """Leaves together with the others; a rank that just exits sometimes aborts those still reading. Returns the least
    of all ranks' values."""
    least = barrier(cluster, value)
    cluster.close()
    return least


def _send(cluster: Cluster, tensor: Tensor, rank: int) -> None:
    _count(cluster, tensor, Direction.UP if cluster.rank else Direction.DOWN)
    cluster.send(tensor, [rank], Label(Kind.CONTROL, cluster.round, Phase.HANDSHAKE))


def _receive(cluster: Cluster, alike: Tensor, rank: int) -> Tensor:
    """A tensor of the size and type of another."""
    _count(cluster, alike, Direction.DOWN if cluster.rank else Direction.UP)
    buffer = FrameBuffer(alike.nbytes)
    cluster.receive({rank: buffer}, Phase.HANDSHAKE)
    cluster.received_bytes += alike.nbytes
    return buffer.body.view(alike.dtype)


def _count(cluster: Cluster, tensor: Tensor, direction: Direction) -> None:
    cluster.ledger.count(CountedMessage.of(tensor, Kind.CONTROL, direction, Phase.HANDSHAKE), machines=1)
