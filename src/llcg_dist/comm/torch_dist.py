"""The transport between real processes: a star of torch.distributed process groups, the server in the middle.

Every machine shares a group of two with the server and no other machine, so none relays another's model, none sees
another's update, and a lost machine breaks its own link alone. Machines have a group of their own where their method
lets them talk to each other (`machine_group`). What crosses is counted by those who send it.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import torch.distributed as dist
from torch import Tensor

from llcg_dist.comm.job_store import connect_store, ignored_values
from llcg_dist.comm.ledger import Ledger
from llcg_dist.comm.liveness import Heartbeat, Limits
from llcg_dist.comm.network import use_interface
from llcg_dist.comm.rendezvous import choose_backend, fresh_prefix, negotiate, pick_server, swapped_rank
from llcg_dist.comm.waiter import FOREVER, Waiter
from llcg_dist.errors import PeerLostError, UserError, first_line

_POLL_SECONDS = 2e-3
_STORE_SECONDS = 2.0
"""How long a rank that ends tries to tell the others why."""
REFUSED = "llcg/refused"
"""Key of the job's store: why no rank should start again."""
_FAILURE = "failure"
"""Key of the job's store: why the first rank that failed did so."""


@dataclass(frozen=True)
class RankResources:
    """What a rank brings to its job. The first rank with the full graph, and the run if there is one, serves."""

    interface: str | None = None
    """cluster.interface: Gloo's and NCCL's; by default the one that leads to MASTER_ADDR."""
    graph: bool = True
    run: bool = True
    own_gpu: bool = False
    key: bytes | None = field(default=None, repr=False)
    """The job's key, which seals the values of its store."""


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
        try:
            self._store = connect_store(limit, rank == 0, self._key)
            self._prefix = fresh_prefix(self._store, rank, self.size, join_timeout)
            self._job_store = dist.PrefixStore(self._prefix, self._store)
            decide = partial(_decide, backend)
            decision = negotiate(self._job_store, rank, self.size, own_resources, decide, join_timeout)
            self.server = int(decision["server"])
            """The number that torchrun gave to the server; to us it is rank 0."""
            self.rank, self.backend = swapped_rank(rank, self.server), str(decision["backend"])
            self._device = dist.ProcessGroupGloo.create_device(interface=os.environ["GLOO_SOCKET_IFNAME"])
            self._links = {other: self._link(other, limit) for other in self.peers}
        except UserError as error:
            self.refuse(str(error))
            raise
        except PeerLostError as error:
            raise PeerLostError(f"{error}{ignored_values(self._store)}") from error
        except (OSError, RuntimeError, ValueError) as error:
            raise PeerLostError(f"cannot join the other ranks: {first_line(error)}") from error
        self._heartbeat: Heartbeat | None = None
        self._waiter, self._meetings = Waiter(), 0
        self._pending: list[tuple[int, Any]] = []
        """Sent or expected, and not waited for yet; the buffers stay as they are until the next wait."""
        self.wire_device = "cuda" if "nccl" in self.backend else "cpu"
        self.ledger, self.received_bytes = ledger, 0

    @property
    def peers(self) -> Sequence[int]:
        """The ranks that this one has a link to."""
        return range(1, self.size) if self.rank == 0 else [0]

    def _link(self, other: int, limit: timedelta) -> "_Link":
        machine = max(self.rank, other)
        store = dist.PrefixStore(f"link/{machine}", self._job_store)
        return _Link(self._gloo(store, min(self.rank, 1), 2, limit), store, self.rank, self.backend)

    def _gloo(self, store: dist.Store, rank: int, size: int, limit: timedelta) -> dist.ProcessGroupGloo:
        options: Any = dist.ProcessGroupGloo._Options()  # type: ignore[attr-defined]
        options._devices, options._threads, options._timeout = [self._device], 1, limit
        return dist.ProcessGroupGloo(store, rank, size, options)

    def send(self, message: Tensor, rank: int) -> None:
        """Returns before it has arrived: the tensor stays as it is until the next `wait` or `receive`."""
        self._pending.append((rank, self._begun(rank, self._links[rank].send, message)))

    def expect(self, buffers: Mapping[int, Tensor]) -> None:
        """One message from each of these ranks, at most as long as its buffer; returns before they have arrived."""
        for rank, buffer in buffers.items():
            self._pending.append((rank, self._begun(rank, self._links[rank].receive, buffer)))

    def receive(self, buffers: Mapping[int, Tensor]) -> None:
        """One message from each of these ranks, at most as long as its buffer."""
        self.expect(buffers)
        self.wait()

    def wait(self, *works: tuple[int, Any]) -> None:
        """Until these, all sends and all that is expected are done; Python's signal handlers run meanwhile."""
        pending, self._pending = [*self._pending, *works], []
        failure = self._waiter.wait([work for _, work in pending]) if pending else None
        if failure:
            place, error = failure
            raise _lost(pending[place][0], error) from error

    def _begun(self, rank: int, begin: Callable[[Tensor], Any], tensor: Tensor) -> Any:
        """A send or receive under way; Gloo may know already that the link is gone."""
        try:
            return begin(tensor)
        except RuntimeError as error:
            raise _lost(rank, error) from error

    def machine_group(self) -> "MachineGroup":
        """For what machines exchange without the server; every machine calls it."""
        store = dist.PrefixStore("machines", self._job_store)
        return MachineGroup(self, self._gloo(store, self.rank - 1, self.size - 1, FOREVER))

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

    def refuse(self, reason: str) -> None:
        """Tells the launchers that this job cannot work, so that none of them starts it again."""
        self._store.set(REFUSED, reason)

    def record_failure(self, message: str) -> None:
        """Tells the other ranks why this one ends; the first to fail is heard."""
        _within(_STORE_SECONDS, lambda: self._job_store.compare_set(_FAILURE, "", message))

    def wait_for_failure(self, seconds: float) -> str | None:
        """What a rank recorded, as soon as it is there."""
        found: list[str] = []

        def look() -> None:
            while not self._job_store.check([_FAILURE]):
                time.sleep(10 * _POLL_SECONDS)
            found.append(self._job_store.get(_FAILURE).decode())

        _within(seconds, look)
        return found[0] if found else None

    def meet(self) -> None:
        """Waits through the store until all ranks are here: no byte moves between them."""
        self._meetings += 1
        seconds, key = _POLL_SECONDS, f"meeting/{self._meetings}"
        try:
            self._job_store.add(key, 1)
            while self._job_store.add(key, 0) < self.size:
                time.sleep(seconds)
                seconds = min(seconds * 1.5, 1.0)  # the audit counts these questions
        except RuntimeError as error:
            raise PeerLostError(f"lost the job's store: {first_line(error)}") from error

    def close(self) -> None:
        """To be called when no rank has anything more to read from this one."""
        if self._heartbeat:
            self._heartbeat.stop()


class _Link:
    """Server and one machine, members 0 and 1 of a group of two. CPU tensors cross on Gloo, GPU tensors on NCCL."""

    def __init__(self, gloo: dist.ProcessGroupGloo, store: dist.Store, rank: int, backend: str) -> None:
        self._gloo, self._peer = gloo, 0 if rank else 1
        self._nccl = None
        if "nccl" in backend:
            options = dist.ProcessGroupNCCL.Options()
            options._timeout = FOREVER
            self._nccl = dist.ProcessGroupNCCL(dist.PrefixStore("nccl", store), min(rank, 1), 2, options)

    def send(self, message: Tensor) -> Any:
        return self._group(message).send([message], self._peer, 0)

    def receive(self, buffer: Tensor) -> Any:
        return self._group(buffer).recv([buffer], self._peer, 0)

    def _group(self, tensor: Tensor) -> Any:
        return self._nccl if tensor.is_cuda else self._gloo


class MachineGroup:
    """The machines among themselves, ranks 1..P of the job."""

    def __init__(self, cluster: Cluster, group: Any) -> None:
        self._cluster, self._group = cluster, group

    def all_to_all(self, sent: Tensor, sent_rows: list[int], received_rows: list[int]) -> Tensor:
        """The first sent_rows[0] rows go to the first machine, and so on; the rows received, machine by machine."""
        received = sent.new_empty(sum(received_rows), *sent.shape[1:])
        self._cluster.wait((0, self._group.alltoall_base(received, sent, received_rows, sent_rows)))
        own = received_rows[self._cluster.rank - 1]
        self._cluster.received_bytes += received[:1].nbytes * (len(received) - own)
        return received


def _lost(rank: int, error: Exception) -> PeerLostError:
    return PeerLostError(f"lost the connection to rank {rank}: {first_line(error)}")


def _within(seconds: float, ask_store: Callable[[], object]) -> None:
    """Asks the job's store, but waits no longer than this: across a cut link an answer may take for ever."""

    def ask() -> None:
        with contextlib.suppress(RuntimeError):  # the store's host is gone
            ask_store()

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)


def _describe(resources: RankResources) -> dict[str, Any]:
    try:
        use_interface(resources.interface, os.environ["MASTER_ADDR"])
    except UserError as error:
        return {"error": str(error)}
    return {"graph": resources.graph, "run": resources.run, "own_gpu": resources.own_gpu}


def _decide(requested: str, everyone: Sequence[dict[str, Any]]) -> dict[str, Any]:
    backend = choose_backend(requested, [bool(said["own_gpu"]) for said in everyone])
    return {"server": pick_server(everyone), "backend": backend}
