"""Packets between real processes, over the links of a Cluster."""

from collections.abc import Sequence

from llcg_dist.comm.channel import MachineChannel
from llcg_dist.comm.codec import Codec
from llcg_dist.comm.envelope import Envelope, Packet, control_bytes
from llcg_dist.comm.messages import NUM_STATS
from llcg_dist.comm.session import LARGEST_MESSAGE
from llcg_dist.comm.torch_dist import Cluster
from llcg_dist.errors import UserError


def content_bytes(codec: Codec, sealed: bool) -> int:
    """The largest content of any message: a model as it is compressed, or a vector of float32."""
    largest = max(codec.elements * codec.dtype.itemsize, 4 * codec.size)
    if sealed and control_bytes(NUM_STATS) + largest > LARGEST_MESSAGE:
        raise UserError(f"a model of {largest} bytes cannot be sealed: 2 GiB is the most; use cluster.sealed=false")
    return largest


class ProcessTransport:
    """The server's end. `rank_of_part[p]` is the rank that trains part p. What is received lies where the next replies
    will arrive."""

    parallel = True

    def __init__(self, cluster: Cluster, rank_of_part: Sequence[int], codec: Codec) -> None:
        self._cluster, self.num_machines = cluster, len(rank_of_part)
        capacity, device = content_bytes(codec, cluster.seal_bytes > 0), cluster.wire_device
        self.rank_of_part = list(rank_of_part)
        self.seal_bytes = cluster.seal_bytes
        self._outgoing = Envelope(0, capacity, device)
        self._incoming = {rank: Envelope(NUM_STATS, capacity, device) for rank in rank_of_part}

    def send(self, packet: Packet, has_reply: bool) -> None:
        self._cluster.wait()  # a request without a reply may still be on its way
        message = self._outgoing.write(packet)
        self._cluster.round = packet.round
        self._cluster.send(message, list(self._incoming), packet.label)
        if has_reply:  # replies arrive while the server does other things
            frames = {rank: envelope.frame for rank, envelope in self._incoming.items()}
            self._cluster.expect(frames, packet.phase)

    def receive(self) -> list[Packet]:
        self._cluster.wait()
        self._cluster.received_bytes += sum(envelope.received_bytes for envelope in self._incoming.values())
        return [envelope.read() for envelope in self._incoming.values()]


def answer_requests(cluster: Cluster, machine: MachineChannel, codec: Codec) -> None:
    """A machine's rounds: answers the server's requests until it says that the run is over."""
    capacity, device = content_bytes(codec, cluster.seal_bytes > 0), cluster.wire_device
    incoming, outgoing = Envelope(0, capacity, device), Envelope(NUM_STATS, capacity, device)
    while True:
        cluster.receive({0: incoming.frame})
        cluster.received_bytes += incoming.received_bytes
        request = incoming.read()
        cluster.round = request.round
        reply = machine.answer(request)
        if reply is None:
            return
        cluster.send(outgoing.write(reply), [0], reply.label)
        machine.after_reply()
