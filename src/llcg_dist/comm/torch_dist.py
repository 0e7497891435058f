"""The transport between real processes: a star of torch.distributed process groups, the server in the middle.

Every machine shares a group of two with the server and no other machine, so none relays another's model, none sees
another's update, and a lost machine breaks its own link alone. Machines have a group of their own where their method
lets them talk to each other (`machine_group`). What crosses is counted by those who send it. Where the job has a key,
every message is sealed (comm/session.py).
"""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from operator import methodcaller
from typing import Any

import torch.distributed as dist
from torch import Tensor

from llcg_dist.comm.frame import SEAL_BYTES, FrameBuffer, Label, SealError
from llcg_dist.comm.job_board import REFUSED, JobBoard, loss_key
from llcg_dist.comm.job_store import connect_store, ignored_values
from llcg_dist.comm.ledger import CountedMessage, Direction, Kind, Ledger, Phase
from llcg_dist.comm.link_maker import LinkMaker
from llcg_dist.comm.links import Link
from llcg_dist.comm.liveness import Heartbeat, Limits
from llcg_dist.comm.machine_group import MachineGroup
from llcg_dist.comm.rendezvous import fresh_prefix, negotiate, swapped_rank
from llcg_dist.comm.resources import RankResources, Ticket, decide, describe
from llcg_dist.comm.session import Scope
from llcg_dist.comm.waiter import Patience, Waiters, by_link
from llcg_dist.data import progress
from llcg_dist.errors import PeerLostError, UserError, first_line

log = logging.getLogger(__name__)


class Cluster:
    """The links of one rank, from joining the job to leaving it in order."""

    losses: dict[int, str] | None = None
    """Ranks that are lost, and why, where the others go on without them; None: a loss is an error."""

    def __init__(
        self,
        backend: str,
        join_timeout: float,
        ledger: Ledger,
        resources: RankResources | None = None,
        ticket: Ticket | None = None,
    ) -> None:
        """`backend` is cluster.backend; which it becomes, and who is rank 0, follows from the resources of all. With a
        `ticket` there is no link yet."""
        self.size, self._limit = int(os.environ["WORLD_SIZE"]), timedelta(seconds=join_timeout)
        resources = resources or RankResources()
        self._key = resources.key
        self.ledger, self.received_bytes, self.round = ledger, 0, 0
        self.seal_bytes = SEAL_BYTES if self._key else 0
        """What sealing adds to a message."""
        says = describe(resources)
        if ticket and "error" in says:  # the others train on
            raise UserError(str(says["error"]))
        try:
            self._join(int(os.environ["RANK"]), backend, says, ticket)
        except UserError as error:
            self._store.set(REFUSED, str(error))
            raise
        except PeerLostError as error:
            raise PeerLostError(f"{error}{ignored_values(self._store)}") from error
        except (OSError, RuntimeError, ValueError) as error:
            raise PeerLostError(f"cannot join the other ranks: {first_line(error)}") from error
        self._heartbeat: Heartbeat | None = None
        self.waiters = Waiters()
        self._incarnations: dict[int, int] = {}
        self._pending: list[tuple[int, Any]] = []
        """Sent or expected, and not waited for yet; the buffers stay as they are until the next wait."""

    def _join(self, rank: int, backend: str, says: dict[str, Any], ticket: Ticket | None) -> None:
        """Finds the other ranks through the store, agrees with them on who serves and how, and makes the links."""
        seconds = self._limit.total_seconds()
        self._store = connect_store(self._limit, rank == 0, self._key)
        self._prefix = ticket.prefix if ticket else fresh_prefix(self._store, rank, self.size, seconds)
        self._start_store = dist.PrefixStore(self._prefix, self._store)
        self.board = JobBoard(self._store, self._start_store, self.size)
        follows = partial(decide, backend, self._key is not None)
        decision = ticket.decision if ticket else negotiate(self._start_store, rank, self.size, says, follows, seconds)
        self.server = int(decision["server"])
        """The number that torchrun gave to the server; to us it is rank 0."""
        self.rank, self.backend = swapped_rank(rank, self.server), str(decision["backend"])
        self.ticket = Ticket(self._prefix, decision, self.board.new_incarnation(self.rank) if ticket else 0)
        scope = Scope(self._prefix, self._key, decision["cipher"]) if self._key else None
        self._maker = LinkMaker(self.rank, self.backend, self._start_store, scope)
        first = range(1, self.size) if self.rank == 0 else [0]
        self._links = {} if ticket else {other: self._link(other, self._limit) for other in first}

    @property
    def peers(self) -> Sequence[int]:
        """The ranks that this one has a link to."""
        return list(self._links)

    def _link(self, other: int, limit: timedelta, incarnation: int = 0) -> Link:
        link = self._maker.link(other, limit, incarnation)
        if self.seal_bytes:
            for direction in (Direction.UP, Direction.DOWN):
                proof = CountedMessage(Kind.SEALING, direction, "uint8", SEAL_BYTES, SEAL_BYTES, Phase.HANDSHAKE)
                self.ledger.count(proof, machines=1)
            self.received_bytes += SEAL_BYTES
        return link

    def name_parts(self, part_of_rank: Mapping[int, int]) -> None:
        """Which rank trains which part, as far as this one needs to know it."""
        for other, link in self._links.items():
            link.part = part_of_rank.get(max(other, self.rank), link.part)

    def send(self, message: Tensor, ranks: Sequence[int], label: Label) -> None:
        """Returns before it has arrived: the tensor stays as it is until the next `wait` or `receive`."""
        self.ledger.count_seals(self.seal_bytes, len(ranks), Direction.UP if self.rank else Direction.DOWN, label.phase)
        for rank in ranks:
            self._begin(rank, methodcaller("send", message, label))

    def expect(self, buffers: Mapping[int, FrameBuffer], phase: Phase = Phase.ROUND) -> None:
        """One message from each of these ranks, at most as long as its buffer; returns before they have arrived."""
        self.ledger.count_seals(self.seal_bytes, len(buffers), Direction.DOWN if self.rank else Direction.UP, phase)
        self.received_bytes += self.seal_bytes * len(buffers)
        for rank, buffer in buffers.items():
            self._begin(rank, methodcaller("receive", buffer))

    def receive(self, buffers: Mapping[int, FrameBuffer], phase: Phase = Phase.ROUND) -> None:
        """One message from each of these ranks, at most as long as its buffer."""
        self.expect(buffers, phase)
        self.wait()

    def wait(self, *works: tuple[int, Any], patience: Patience | None = None) -> None:
        """Until these, all sends and all that is expected are done; Python's signal handlers run meanwhile. What
        `patience` does not reach to may come later."""
        self.begin_waiting(*works)
        for rank, error in self.waiters.wait({}, self.losses is not None, patience).items():
            self._failed(rank, error)

    def begin_waiting(self, *works: tuple[int, Any]) -> None:
        """Notes from now on when each of them is done."""
        pending, self._pending = [*self._pending, *works], []
        self.waiters.give(by_link(pending))

    def take_late(self, wait: bool) -> list[int]:
        """Ranks that a wait has ended without, and that are done since; waits for one of them where asked."""
        ended = self.waiters.ended_late(wait)
        for rank, error in ended.items():
            if error:
                self._failed(rank, error)
        return sorted(rank for rank, error in ended.items() if error is None)

    def _failed(self, rank: int, error: Exception) -> None:
        if self.losses is None or isinstance(error, SealError):  # who changes messages is no machine that is gone
            raise error if isinstance(error, SealError | PeerLostError) else self._lost(rank, error) from error
        self.lose(rank, _cause(error))

    def _begin(self, rank: int, begin: Callable[[Link], Any]) -> None:
        """A send or receive is under way; Gloo may know already that the link is gone."""
        try:
            if rank in self._links:
                self._pending.append((rank, begin(self._links[rank])))
        except RuntimeError as error:
            if self.losses is None:
                raise self._lost(rank, error) from error
            self.lose(rank, _cause(error))

    def lose(self, rank: int, why: str) -> None:
        """The server goes on without this rank, which may be alive and is told."""
        assert self.losses is not None
        if self._links.pop(rank, None) is not None:
            self.losses[rank] = why
            self._pending = [(other, work) for other, work in self._pending if other != rank]
            self.waiters.forget(rank)
            if self._heartbeat:
                self._heartbeat.forget(rank)
            self.board.drop(rank, self._incarnations.get(rank, 0))

    def admit(self, rank: int, part: int, seconds: float) -> bool:
        """The server makes a new link to the rank of this part, if it is back, within so many seconds."""
        incarnation = self.board.announced(rank)
        if incarnation <= self._incarnations.get(rank, 0):
            return False
        self._incarnations[rank] = incarnation
        self.board.admit(rank, incarnation)
        try:
            self._links[rank] = self._link(rank, timedelta(seconds=seconds), incarnation)
        except (RuntimeError, SealError) as error:  # it has gone again
            log.warning("rank %d did not come back: %s", rank, first_line(error))
            self.board.drop(rank, incarnation)
            return False
        self._links[rank].part = part
        if self._heartbeat:
            self._heartbeat.watch(rank, f"rank {rank} (part {part})", incarnation)
        return True

    def return_to_server(self) -> bool:
        """A rank that joins again is ready: waits until the server has a link to it. False: the run is over."""
        incarnation = self.ticket.incarnation
        self.board.announce(self.rank, incarnation)
        with progress.waiting():
            if self.board.waits_for_admission(self.rank, incarnation):
                self._links[0] = self._link(0, self._limit, incarnation)
        return 0 in self._links

    def _lost(self, rank: int, error: Exception) -> PeerLostError:
        part = self._links[rank].part if rank else None
        name = f"rank {rank}" if part is None else f"rank {rank} (part {part})"
        return PeerLostError(f"lost the connection to {name}: {first_line(error)}")

    def machine_group(self, part_of_rank: Mapping[int, int] | None = None) -> MachineGroup:
        """For what machines exchange without the server; every machine calls it."""
        group, sessions = self._maker.machine_group(self.size, self._limit)
        for rank, session in sessions.items():
            session.part = (part_of_rank or {}).get(rank)
        return MachineGroup(self, group, sessions)

    def watch(
        self,
        names: Mapping[int, str],
        limits: Limits,
        on_failure: Callable[[str], None],
        on_beat: Callable[[], None] = lambda: None,
    ) -> None:
        """From now on `on_failure` hears of the named ranks that are silent, or stay where they are, for too long; they
        are lost instead where the others go on. `on_beat` is called all the while."""
        if self._heartbeat:
            self._heartbeat.stop()
        # A connection of its own: the job's store may be busy in the main thread.
        beats = self._beat_store = connect_store(timedelta(seconds=limits.silence), False, self._key)
        store = dist.PrefixStore(self._prefix, beats)
        # Someone whose beats are forged may be alive: the message then says so.
        self._heartbeat = Heartbeat(
            store, self.rank, names, limits, lambda message: on_failure(message + ignored_values(beats))
        )
        self._heartbeat.set_incarnation(self.rank, self.ticket.incarnation)
        self._heartbeat.on_beat, self._heartbeat.loss_key = on_beat, loss_key(self.rank) if self.rank else None
        if self.losses is not None:
            self._heartbeat.on_loss = self.waiters.give_up
        self._heartbeat.start()

    def close(self) -> None:
        """To be called when no rank has anything more to read from this one."""
        if self._heartbeat:
            self._heartbeat.stop()


def _cause(error: Exception) -> str:
    """Gloo adds advice to what has happened."""
    return first_line(error).partition(". ")[0]
