"""The transport between real processes: torch.distributed collectives, rank 0 the server, ranks 1..P the machines.

A model crosses as one flat buffer, collected at rank 0 and broadcast back. Collecting (rather than reducing) keeps the
machines' updates apart until the server has them, so that they can be averaged in part order and no machine ever sees
another's partial sums. Gloo's own gather would first receive them all into memory of its own, new every time, and then
copy: `collect` lets every update arrive where it stays.
"""

import json
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import _set_pg_timeout

from llcg_dist.comm.envelope import Envelope
from llcg_dist.comm.ledger import Direction, Kind, Ledger, Message, Phase
from llcg_dist.comm.liveness import Heartbeat
from llcg_dist.comm.network import listen_on, use_interface
from llcg_dist.comm.rendezvous import choose_backend, fresh_prefix, negotiate, pick_server, swapped_rank
from llcg_dist.comm.waiter import Waiter
from llcg_dist.errors import PeerLostError, ProtocolError, UserError

_POLL_SECONDS = 2e-3
_LARGEST_JSON_BYTES = 1 << 20
REFUSED = "llcg/refused"
"""Key of the job's store: why no rank should start again."""


@dataclass(frozen=True)
class RankResources:
    """What a rank brings to its job. The first rank with the whole graph, and the run if there is one, serves."""

    interface: str | None = None
    """cluster.interface: Gloo's and NCCL's; by default the one that leads to MASTER_ADDR."""
    graph: bool = True
    run: bool = True
    own_gpu: bool = False


class Cluster:
    """The process group of one job, from joining it to leaving it in order. Nothing crosses it uncounted."""

    def __init__(self, backend: str, join_timeout: float, ledger: Ledger, means: RankResources | None = None) -> None:
        """`backend` is cluster.backend; which it becomes, and who is rank 0, follows from the means of all ranks."""
        rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        limit = timedelta(seconds=join_timeout)
        says = _say(means or RankResources())
        try:
            self._store = _connect_store(limit, hosts=rank == 0)
            self._prefix = fresh_prefix(self._store, rank, self.size, join_timeout)
            own = dist.PrefixStore(self._prefix, self._store)
            verdict = negotiate(own, rank, self.size, says, partial(_decide, backend), join_timeout)
            self.server = int(verdict["server"])
            """The number that torchrun gave to the server; to us it is rank 0."""
            self.rank = swapped_rank(rank, self.server)
            dist.init_process_group(verdict["backend"], store=own, rank=self.rank, world_size=self.size, timeout=limit)
        except UserError as error:
            self.refuse(str(error))
            raise
        except (OSError, RuntimeError, ValueError) as error:
            raise PeerLostError(f"cannot join the other ranks: {_first_line(error)}") from error
        self._group_store, self._meetings = own, 0
        self._heartbeat: Heartbeat | None = None
        self._waiter = Waiter()
        self._pending: list[Any] = []
        """Sent and not waited for yet; the envelope stays as it is until the next wait."""
        self.wire_device = "cuda" if "nccl" in verdict["backend"] else "cpu"
        self.backend: str = verdict["backend"]
        self.ledger = ledger
        self.received_bytes = 0
        """What this rank's collectives brought it from others."""

    def gather(self, tensor: Tensor, kind: Kind, phase: Phase = Phase.ROUND) -> list[Tensor]:
        """One tensor of the same shape from every rank, by rank; empty at all but rank 0."""
        self._count(Message.of(tensor, kind, Direction.UP, phase))
        received = [torch.empty_like(tensor) for _ in range(self.size)] if self.rank == 0 else None
        self.wait(dist.gather(tensor, received, dst=0, async_op=True))
        self.received_bytes += tensor.nbytes * (self.size - 1 if self.rank == 0 else 0)
        return received or []

    def broadcast(self, tensor: Tensor, kind: Kind, phase: Phase = Phase.ROUND) -> Tensor:
        """Rank 0's tensor, written into everyone's."""
        self._count(Message.of(tensor, kind, Direction.DOWN, phase))
        self._broadcast(tensor)
        return tensor

    def _broadcast(self, tensor: Tensor) -> None:
        self.wait(dist.broadcast(tensor, src=0, async_op=True))
        self.received_bytes += tensor.nbytes if self.rank else 0

    def collect(self, own: Envelope | None, received: Mapping[int, Envelope], kind: Kind) -> None:
        """Every machine's envelope, written into the one that rank 0 has for its rank; machines do not wait for it."""
        envelope = own or next(iter(received.values()))
        self._count_enclosed(envelope, kind, Direction.UP)
        if own is not None:
            self._pending.append(dist.isend(own.bytes, 0))
            return
        self.wait(*(dist.irecv(envelope.bytes, rank) for rank, envelope in received.items()))
        self.received_bytes += sum(envelope.bytes.nbytes for envelope in received.values())

    def broadcast_envelope(self, envelope: Envelope, kind: Kind) -> None:
        """Rank 0's, written into everyone's; rank 0 does not wait for it."""
        self._count_enclosed(envelope, kind, Direction.DOWN)
        if self.rank == 0:
            self._pending.append(dist.broadcast(envelope.bytes, src=0, async_op=True))
        else:
            self._broadcast(envelope.bytes)

    def gather_json(self, content: dict[str, Any]) -> list[dict[str, Any]]:
        """A JSON object from every rank, by rank; empty at all but rank 0. For the handshake."""
        encoded = json.dumps(content).encode()
        sizes = self.gather(torch.tensor([len(encoded)]), Kind.CONTROL, Phase.HANDSHAKE)
        width = torch.tensor([max((int(size) for size in sizes), default=0)])
        self.broadcast(width, Kind.CONTROL, Phase.HANDSHAKE)
        padded = torch.zeros(_checked(int(width)), dtype=torch.uint8)
        padded[: len(encoded)] = torch.frombuffer(bytearray(encoded), dtype=torch.uint8)
        rows = self.gather(padded, Kind.CONTROL, Phase.HANDSHAKE)
        return [json.loads(bytes(row.tolist()).rstrip(b"\0")) for row in rows]

    def broadcast_json(self, content: dict[str, Any]) -> dict[str, Any]:
        """Rank 0's JSON object, at every rank. For the handshake."""
        encoded = torch.frombuffer(bytearray(json.dumps(content).encode()), dtype=torch.uint8)
        size = self.broadcast(torch.tensor([len(encoded)]), Kind.CONTROL, Phase.HANDSHAKE)
        buffer = encoded if self.rank == 0 else torch.zeros(_checked(int(size)), dtype=torch.uint8)
        return json.loads(bytes(self.broadcast(buffer, Kind.CONTROL, Phase.HANDSHAKE).tolist()))

    def machine_group(self) -> "MachineGroup":
        """For what machines exchange without the server; every rank calls it, in the same place."""
        limit = timedelta(days=365)  # as in `watch`
        return MachineGroup(self, dist.new_group(range(1, self.size), timeout=limit))

    def watch(self, names: Mapping[int, str], limit: float, on_silence: Callable[[str], None]) -> None:
        """From now on `on_silence` hears of the named ranks that are silent for longer than `limit` seconds."""
        if self._heartbeat:
            self._heartbeat.stop()
        _set_pg_timeout(timedelta(days=365))  # a collective may wait as long as a round takes: silence is what counts
        # A connection of its own: the group's store may be busy in the main thread.
        store = dist.PrefixStore(self._prefix, _connect_store(timedelta(seconds=limit), hosts=False))
        self._heartbeat = Heartbeat(store, self.rank, names, limit, on_silence)
        self._heartbeat.start()

    def refuse(self, reason: str) -> None:
        """Tells the launchers that this job cannot work, so that none of them starts it again."""
        self._store.set(REFUSED, reason)

    def at_quiescence(self, read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Calls `read` when all that ranks sent each other has arrived and before any sends more. For the audit.

        The barrier makes them wait for the slowest; then they meet through the store: no byte moves between them.
        """
        self.wait(dist.barrier(async_op=True))
        self._meet()
        found = read()
        self._meet()
        return found

    def _meet(self) -> None:
        self._meetings += 1
        nap, key = _POLL_SECONDS, f"meeting/{self._meetings}"
        try:
            self._group_store.add(key, 1)
            while self._group_store.add(key, 0) < self.size:
                time.sleep(nap)
                nap = min(nap * 1.5, 1.0)  # the audit counts these questions
        except RuntimeError as error:
            raise PeerLostError(f"lost the job's store: {_first_line(error)}") from error

    def close(self) -> None:
        """Leaves together with the others; a rank that just exits sometimes aborts those still reading."""
        self.wait(dist.barrier(async_op=True))
        if self._heartbeat:
            self._heartbeat.stop()
        dist.destroy_process_group()

    def _count(self, message: Message, enclosed: bool = False) -> None:
        self.ledger.count(message, machines=self.size - 1 if self.rank == 0 else 1, enclosed=enclosed)

    def _count_enclosed(self, envelope: Envelope, kind: Kind, direction: Direction) -> None:
        for number, message in enumerate(envelope.messages(kind, direction)):
            self._count(message, enclosed=number > 0)

    def wait(self, *works: Any) -> None:
        """Until they are done, and all that is under way; Python's signal handlers run meanwhile."""
        under_way, self._pending = self._pending, []
        try:
            self._waiter.wait([*under_way, *works])
        except RuntimeError as error:
            raise PeerLostError(f"lost the connection to another rank: {_first_line(error)}") from error


class MachineGroup:
    """The machines among themselves, ranks 1..P of the job."""

    def __init__(self, cluster: Cluster, group: Any) -> None:
        self._cluster, self._group = cluster, group

    def all_to_all(self, sent: Tensor, sent_rows: list[int], received_rows: list[int]) -> Tensor:
        """The first sent_rows[0] rows go to the first machine, and so on; the rows received, machine by machine."""
        received = sent.new_empty(sum(received_rows), *sent.shape[1:])
        work = dist.all_to_all_single(received, sent, received_rows, sent_rows, group=self._group, async_op=True)
        self._cluster.wait(work)
        own = received_rows[self._cluster.rank - 1]
        self._cluster.received_bytes += received[:1].nbytes * (len(received) - own)
        return received


def _say(means: RankResources) -> dict[str, Any]:
    try:
        use_interface(means.interface, os.environ["MASTER_ADDR"])
    except UserError as error:
        return {"error": str(error)}
    return {"graph": means.graph, "run": means.run, "own_gpu": means.own_gpu}


def _decide(requested: str, everyone: Sequence[dict[str, Any]]) -> dict[str, Any]:
    backend = choose_backend(requested, [bool(said["own_gpu"]) for said in everyone])
    return {"server": pick_server(everyone), "backend": backend}


def _connect_store(limit: timedelta, hosts: bool) -> dist.TCPStore:
    """The store at MASTER_ADDR:MASTER_PORT. torchrun's agent hosts it where it says so, else rank 0 does."""
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if hosts and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return host_store(listen_on(address, port), limit)
    return reach_store(address, port, limit)


def host_store(listener: socket.socket, limit: timedelta) -> dist.TCPStore:
    """A store behind this socket and no other: left to itself, torch listens on every interface of the host."""
    address, port = listener.getsockname()[:2]
    # The store owns the socket from here on, and closes it.
    return dist.TCPStore(
        address, port, is_master=True, timeout=limit, wait_for_workers=False, master_listen_fd=listener.detach()
    )


def reach_store(host: str, port: int, limit: timedelta) -> dist.TCPStore:
    """A store that another process hosts."""
    return dist.TCPStore(host, port, is_master=False, timeout=limit, wait_for_workers=False)


def _checked(size: int) -> int:
    if not 0 < size <= _LARGEST_JSON_BYTES:
        raise ProtocolError(f"a handshake message of {size} bytes")
    return size


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
