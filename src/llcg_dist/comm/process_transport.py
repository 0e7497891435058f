"""Packets between real processes, over the links of a Cluster."""

from collections.abc import Sequence
from functools import partial

from llcg_dist.comm.codec import Codec
from llcg_dist.comm.deadline import Deadline
from llcg_dist.comm.envelope import Envelope, Packet, control_bytes
from llcg_dist.comm.ledger import Phase
from llcg_dist.comm.machine_channel import MachineChannel
from llcg_dist.comm.messages import NUM_STATS
from llcg_dist.comm.session import LARGEST_MESSAGE
from llcg_dist.comm.torch_dist import Cluster
from llcg_dist.errors import UserError

_LINK_SECONDS = 10.0
"""How long a round may wait for the link to a machine that has said that it is back."""


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
        self._new_outgoing = partial(Envelope, 0, capacity, device)
        self._outgoing = self._new_outgoing()
        self._asked: list[int] = []
        self.deadline: Deadline | None = None
        self._in_time: Deadline | None = None
        self._new_envelope = partial(Envelope, NUM_STATS, capacity, device)
        self._incoming = [self._new_envelope() for _ in rank_of_part]
        self._away: dict[int, int] = {}
        """Parts whose machines are gone, and their ranks."""

    def send(self, packet: Packet, has_reply: bool, parts: Sequence[int]) -> None:
        self._cluster.wait()  # a request without a reply may still be on its way
        self._asked, ranks = list(parts), [self.rank_of_part[part] for part in parts]
        self._cluster.round = packet.round
        self._cluster.send(self._outgoing.write(packet), ranks, packet.label)
        if has_reply:  # replies arrive while the server does other things
            frames = {self.rank_of_part[part]: self._incoming[part].frame for part in parts}
            self._cluster.expect(frames, packet.phase)
        self._in_time = self.deadline if has_reply and packet.phase is Phase.ROUND else None
        if self._in_time:
            self._in_time.begin(packet.round)
            self._cluster.begin_waiting()

    def receive(self) -> dict[int, Packet]:
        cluster, ranks = self._cluster, {part: self.rank_of_part[part] for part in self._asked}
        cluster.wait(patience=self._in_time.patience(len(ranks)) if self._in_time else None)
        left, late = cluster.peers, cluster.waiters.late
        if self._in_time:
            ends = cluster.waiters.moments
            self._in_time.note({rank: None if rank in late else ends[rank] for rank in ranks.values() if rank in left})
        if any(rank in late for rank in ranks.values()):
            self._outgoing = self._new_outgoing()  # the last one may still be on its way
        return self._read([part for part, rank in ranks.items() if rank in left and rank not in late])

    def take_late(self, round_: int, wait: bool) -> dict[int, Packet]:
        packets = self._read([self.rank_of_part.index(rank) for rank in self._cluster.take_late(wait)])
        return {part: packet.copied() for part, packet in packets.items()}

    def _read(self, parts: Sequence[int]) -> dict[int, Packet]:
        self._cluster.received_bytes += sum(self._incoming[part].received_bytes for part in parts)
        return {part: self._incoming[part].read() for part in parts}

    def take_losses(self) -> dict[int, str]:
        lost, self._cluster.losses = self._cluster.losses, None if self._cluster.losses is None else {}
        for rank in lost or {}:
            self._away[self.rank_of_part.index(rank)] = rank
        return {self.rank_of_part.index(rank): why for rank, why in (lost or {}).items()}

    def admit(self, round_: int) -> list[int]:
        back = [part for part, rank in sorted(self._away.items()) if self._cluster.admit(rank, part, _LINK_SECONDS)]
        for part in back:
            self._incoming[part] = self._new_envelope()  # the old one may still be written to
            del self._away[part]
        return back


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
