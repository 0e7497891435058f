"""The transport between real processes: a star of torch.distributed process groups, the server in the middle.

Every machine shares a group of two with the server and no other machine, so none relays another's model, none sees
another's update, and a lost machine breaks its own link alone. Machines have a group of their own where their method
lets them talk to each other (`machine_group`). What crosses is counted by those who send it. Where the job has a key,
every message is sealed (comm/session.py).
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import torch.distributed as dist
from torch import Tensor

from llcg_dist.comm.frame import SEAL_BYTES, FrameBuffer, Label, SealError
from llcg_dist.comm.job_board import REFUSED, JobBoard
from llcg_dist.comm.job_store import connect_store, ignored_values
from llcg_dist.comm.ledger import CountedMessage, Direction, Kind, Ledger, Phase
from llcg_dist.comm.links import Link, PlainLink, SealedLink
from llcg_dist.comm.liveness import Heartbeat, Limits
from llcg_dist.comm.machine_group import MachineGroup
from llcg_dist.comm.network import use_interface
from llcg_dist.comm.rendezvous import choose_backend, fresh_prefix, negotiate, pick_server, swapped_rank
from llcg_dist.comm.session import Scope, Session, choose_cipher, has_fast_aes, new_salt
from llcg_dist.comm.waiter import FOREVER, Waiter
from llcg_dist.errors import PeerLostError, UserError, first_line


@dataclass(frozen=True)
class RankResources:
    """What a rank brings to its job. The first rank with the full graph, and the run if there is one, serves."""

    interface: str | None = None
    """cluster.interface: Gloo's and NCCL's; by default the one that leads to MASTER_ADDR."""
    graph: bool = True
    run: bool = True
    own_gpu: bool = False
    key: bytes | None = field(default=None, repr=False)
    """The job's key, which seals the values of its store and the messages between ranks."""


class Cluster:
    """The links of one rank, from joining the job to leaving it in order."""

    def __init__(
        self, backend: str, join_timeout: float, ledger: Ledger, resources: RankResources | None = None
    ) -> None:
        """`backend` is cluster.backend; which it becomes, and who is rank 0, follows from the resources of all."""
        rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        limit = timedelta(seconds=join_timeout)
        resources = resources or RankResources()
        own_resources, self._key = _describe(resources), resources.key
        self.ledger, self.received_bytes, self.round = ledger, 0, 0
        self.seal_bytes = SEAL_BYTES if self._key else 0
        """What sealing adds to a message."""
        try:
            self._store = connect_store(limit, rank == 0, self._key)
            self._prefix = fresh_prefix(self._store, rank, self.size, join_timeout)
            self._start_store = dist.PrefixStore(self._prefix, self._store)
            decide = partial(_decide, backend, self._key is not None)
            decision = negotiate(self._start_store, rank, self.size, own_resources, decide, join_timeout)
            self.server = int(decision["server"])
            """The number that torchrun gave to the server; to us it is rank 0."""
            self.rank, self.backend = swapped_rank(rank, self.server), str(decision["backend"])
            self._scope = Scope(self._prefix, self._key, decision["cipher"]) if self._key else None
            self._device = dist.ProcessGroupGloo.create_device(interface=os.environ["GLOO_SOCKET_IFNAME"])
            self._links = {other: self._link(other, limit) for other in self.peers}
        except UserError as error:
            self._store.set(REFUSED, str(error))
            raise
        except PeerLostError as error:
            raise PeerLostError(f"{error}{ignored_values(self._store)}") from error
        except (OSError, RuntimeError, ValueError) as error:
            raise PeerLostError(f"cannot join the other ranks: {first_line(error)}") from error
        self.board = JobBoard(self._store, self._start_store, self.size)
        self._heartbeat: Heartbeat | None = None
        self._waiter = Waiter()
        self._pending: list[tuple[int, Any]] = []
        """Sent or expected, and not waited for yet; the buffers stay as they are until the next wait."""
        self.wire_device = "cuda" if "nccl" in self.backend else "cpu"

    @property
    def peers(self) -> Sequence[int]:
        """The ranks that this one has a link to."""
        return range(1, self.size) if self.rank == 0 else [0]

    def _link(self, other: int, limit: timedelta, incarnation: int = 0) -> Link:
        """A new link to this rank; one that is sealed has been proved to lead there."""
        store = dist.PrefixStore(f"link/{max(self.rank, other)}/{incarnation}", self._start_store)
        own = min(self.rank, 1)
        plain = PlainLink(1 - own, self._gloo(store, own, 2, limit), _nccl(store, own, self.backend))
        if self._scope is None:
            return plain
        link = SealedLink(plain, self._session(store, other, incarnation))
        for direction in (Direction.UP, Direction.DOWN):
            proof = CountedMessage(Kind.SEALING, direction, "uint8", SEAL_BYTES, SEAL_BYTES, Phase.HANDSHAKE)
            self.ledger.count(proof, machines=1)
        link.prove(limit)
        self.received_bytes += SEAL_BYTES
        return link

    def _session(self, store: dist.Store, other: int, incarnation: int = 0) -> Session:
        """The keys of the link to another rank. The store is sealed, so a salt in it is the other's own."""
        assert self._scope is not None
        salt = new_salt()
        store.set(f"salt/{self.rank}-{other}", salt.hex())
        others = bytes.fromhex(store.get(f"salt/{other}-{self.rank}").decode())
        return Session(self._scope, (self.rank, other), (salt, others), incarnation)

    def _gloo(self, store: dist.Store, rank: int, size: int, limit: timedelta) -> dist.ProcessGroupGloo:
        options: Any = dist.ProcessGroupGloo._Options()  # type: ignore[attr-defined]
        options._devices, options._threads, options._timeout = [self._device], 1, limit
        return dist.ProcessGroupGloo(store, rank, size, options)

    def name_parts(self, part_of_rank: Mapping[int, int]) -> None:
        """Which rank trains which part, as far as this one needs to know it."""
        for other, link in self._links.items():
            link.part = part_of_rank.get(max(other, self.rank), link.part)

    def send(self, message: Tensor, ranks: Sequence[int], label: Label) -> None:
        """Returns before it has arrived: the tensor stays as it is until the next `wait` or `receive`."""
        self.ledger.count_seals(self.seal_bytes, len(ranks), Direction.UP if self.rank else Direction.DOWN, label.phase)
        for rank in ranks:
            self._begin(rank, partial(self._links[rank].send, message, label))

    def expect(self, buffers: Mapping[int, FrameBuffer], phase: Phase = Phase.ROUND) -> None:
        """One message from each of these ranks, at most as long as its buffer; returns before they have arrived."""
        self.ledger.count_seals(self.seal_bytes, len(buffers), Direction.DOWN if self.rank else Direction.UP, phase)
        self.received_bytes += self.seal_bytes * len(buffers)
        for rank, buffer in buffers.items():
            self._begin(rank, partial(self._links[rank].receive, buffer))

    def receive(self, buffers: Mapping[int, FrameBuffer], phase: Phase = Phase.ROUND) -> None:
        """One message from each of these ranks, at most as long as its buffer."""
        self.expect(buffers, phase)
        self.wait()

    def wait(self, *works: tuple[int, Any]) -> None:
        """Until these, all sends and all that is expected are done; Python's signal handlers run meanwhile."""
        pending, self._pending = [*self._pending, *works], []
        failure = self._waiter.wait([work for _, work in pending]) if pending else None
        if failure:
            place, error = failure
            raise error if isinstance(error, SealError) else self._lost(pending[place][0], error) from error

    def _begin(self, rank: int, begin: Callable[[], Any]) -> None:
        """A send or receive is under way; Gloo may know already that the link is gone."""
        try:
            self._pending.append((rank, begin()))
        except RuntimeError as error:
            raise self._lost(rank, error) from error

    def _lost(self, rank: int, error: Exception) -> PeerLostError:
        part = self._links[rank].part if rank else None
        name = f"rank {rank}" if part is None else f"rank {rank} (part {part})"
        return PeerLostError(f"lost the connection to {name}: {first_line(error)}")

    def machine_group(self, part_of_rank: Mapping[int, int] | None = None) -> MachineGroup:
        """For what machines exchange without the server; every machine calls it."""
        store = dist.PrefixStore("machines", self._start_store)
        group = self._gloo(store, self.rank - 1, self.size - 1, FOREVER)
        others = [rank for rank in range(1, self.size) if rank != self.rank] if self._scope else []
        sessions = {rank: self._session(store, rank) for rank in others}
        for rank, session in sessions.items():
            session.part = (part_of_rank or {}).get(rank)
        return MachineGroup(self, group, sessions)

    def watch(self, names: Mapping[int, str], limits: Limits, on_failure: Callable[[str], None]) -> None:
        """From now on `on_failure` hears of the named ranks that are silent, or stay where they are, for too long."""
        if self._heartbeat:
            self._heartbeat.stop()
        # A connection of its own: the job's store may be busy in the main thread.
        self._beat_store = connect_store(timedelta(seconds=limits.silence), False, self._key)
        store = dist.PrefixStore(self._prefix, self._beat_store)
        beats = self._beat_store
        # Someone whose beats are forged may be alive: the message then says so.
        self._heartbeat = Heartbeat(
            store, self.rank, names, limits, lambda message: on_failure(message + ignored_values(beats))
        )
        self._heartbeat.start()

    def close(self) -> None:
        """To be called when no rank has anything more to read from this one."""
        if self._heartbeat:
            self._heartbeat.stop()


def _nccl(store: dist.Store, rank: int, backend: str) -> Any:
    """For GPU tensors, where the backend has it; None otherwise."""
    if "nccl" not in backend:
        return None
    options = dist.ProcessGroupNCCL.Options()
    options._timeout = FOREVER
    return dist.ProcessGroupNCCL(dist.PrefixStore("nccl", store), rank, 2, options)


def _describe(resources: RankResources) -> dict[str, Any]:
    try:
        use_interface(resources.interface, os.environ["MASTER_ADDR"])
    except UserError as error:
        return {"error": str(error)}
    own = {"graph": resources.graph, "run": resources.run, "own_gpu": resources.own_gpu}
    return own | {"fast_aes": has_fast_aes()}


def _decide(requested: str, sealed: bool, everyone: Sequence[dict[str, Any]]) -> dict[str, Any]:
    backend = choose_backend(requested, [bool(said["own_gpu"]) for said in everyone], sealed)
    cipher = choose_cipher([bool(said["fast_aes"]) for said in everyone])
    return {"server": pick_server(everyone), "backend": backend, "cipher": cipher}
