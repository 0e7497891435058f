"""The transport between real processes: torch.distributed collectives, rank 0 the server, ranks 1..P the machines.

A model crosses as one flat buffer, gathered at rank 0 and broadcast back. Gathering (rather than reducing) keeps the
machines' updates apart until the server has them, so that they can be averaged in part order and no machine ever sees
another's partial sums.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import _set_pg_timeout

from llcg_dist.comm.channel import Order, Report, Sizes, Update
from llcg_dist.comm.features import FeatureTraffic, count_features
from llcg_dist.comm.heartbeat import Heartbeat
from llcg_dist.comm.ledger import Direction, Kind, Ledger, Message, Phase
from llcg_dist.comm.rendezvous import fresh_prefix
from llcg_dist.errors import PeerLostError, ProtocolError

_LONGEST_NAP = 2e-3
_LARGEST_JSON = 1 << 20


def choose_backend(requested: str, device: str) -> str:
    """torch.distributed's name for cluster.backend: NCCL where ranks have GPUs, with Gloo beside it for CPU tensors."""
    if requested == "nccl" or (requested == "auto" and device == "cuda"):
        return "cpu:gloo,cuda:nccl"
    return "gloo"


class Cluster:
    """The process group of one job, from joining it to leaving it in order. Nothing crosses it uncounted."""

    def __init__(self, backend: str, join_timeout: float, ledger: Ledger) -> None:
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        limit = timedelta(seconds=join_timeout)
        try:
            store = _connect_store(limit, hosts=self.rank == 0)
            self._prefix = fresh_prefix(store, self.rank, self.size, join_timeout)
            own = dist.PrefixStore(self._prefix, store)
            dist.init_process_group(backend, store=own, rank=self.rank, world_size=self.size, timeout=limit)
        except (RuntimeError, ValueError) as error:
            raise PeerLostError(f"cannot join the other ranks: {_first_line(error)}") from error
        self._heartbeat: Heartbeat | None = None
        self.wire_device = "cuda" if "nccl" in backend else "cpu"
        self.ledger = ledger

    def gather(self, tensor: Tensor, kind: Kind, phase: Phase = Phase.ROUND) -> list[Tensor]:
        """One tensor of the same shape from every rank, by rank; empty at all but rank 0."""
        self._count(Message.of(tensor, kind, Direction.UP, phase))
        received = [torch.empty_like(tensor) for _ in range(self.size)] if self.rank == 0 else None
        self.wait(dist.gather(tensor, received, dst=0, async_op=True))
        return received or []

    def broadcast(self, tensor: Tensor, kind: Kind, phase: Phase = Phase.ROUND) -> Tensor:
        """Rank 0's tensor, written into everyone's."""
        self._count(Message.of(tensor, kind, Direction.DOWN, phase))
        self.wait(dist.broadcast(tensor, src=0, async_op=True))
        return tensor

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

    def among_machines(self) -> "MachineGroup":
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

    def close(self) -> None:
        """Leaves together with the others; a rank that just exits sometimes aborts those still reading."""
        self.wait(dist.barrier(async_op=True))
        if self._heartbeat:
            self._heartbeat.stop()
        dist.destroy_process_group()

    def _count(self, message: Message) -> None:
        self.ledger.count(message, machines=self.size - 1 if self.rank == 0 else 1)

    def wait(self, work: Any) -> None:
        """Polls instead of blocking, so that Python's signal handlers run while a collective waits."""
        nap = 5e-5
        try:
            while not work.is_completed():
                time.sleep(nap)
                nap = min(nap * 1.5, _LONGEST_NAP)
            work.wait()
        except RuntimeError as error:
            raise PeerLostError(f"lost the connection to another rank: {_first_line(error)}") from error


class DistServerChannel:
    """The server's end. `rank_of_part[p]` is the rank that trains part p."""

    parallel = True

    def __init__(self, cluster: Cluster, rank_of_part: Sequence[int], sizes: Sizes) -> None:
        self._cluster, self._rank_of_part, self._sizes = cluster, list(rank_of_part), sizes
        self.ledger = cluster.ledger

    def broadcast(self, order: Order) -> None:
        self._cluster.broadcast(torch.tensor([order.whole_round]), Kind.CONTROL)
        if order.theta is not None:
            self._cluster.broadcast(order.theta.to(self._cluster.wire_device), Kind.PARAMETERS)

    def gather_gradients(self, round_: int) -> Sequence[Tensor]:
        return self._gather(self._sizes.gradient, Kind.GRADIENTS)

    def broadcast_gradient(self, mean: Tensor) -> None:
        self._cluster.broadcast(mean.to(self._cluster.wire_device), Kind.GRADIENTS)

    def gather_measured(self) -> Sequence[Tensor]:
        with self.ledger.also_allowing(Kind.GRADIENTS):
            return self._gather(self._sizes.gradient, Kind.GRADIENTS)

    def gather(self, round_: int) -> Sequence[Update]:
        thetas = self._gather(self._sizes.update, Kind.PARAMETERS)
        packed = self._cluster.gather(torch.zeros(Report.size(), dtype=torch.float64), Kind.CONTROL)
        reports = [Report.unpack(packed[rank]) for rank in self._rank_of_part]
        for report in reports:
            count_features(report, self.ledger)
        return [Update(theta, report) for theta, report in zip(thetas, reports, strict=True)]

    def _gather(self, size: int, kind: Kind) -> list[Tensor]:
        """One vector from every machine, in part order."""
        if size == 0:
            return [torch.empty(0)] * len(self._rank_of_part)
        # A gather wants a tensor of the server's own too; it stays where it is.
        own = torch.zeros(size, device=self._cluster.wire_device)
        found = self._cluster.gather(own, kind)
        return [found[rank].cpu() for rank in self._rank_of_part]


class DistMachineChannel:
    """A machine's end. It knows the size of the model, and nothing of the other machines."""

    def __init__(self, cluster: Cluster, sizes: Sizes) -> None:
        self._cluster, self._sizes = cluster, sizes
        self._holds_model = False

    def receive(self) -> Order:
        whole_round = self._cluster.broadcast(torch.zeros(1, dtype=torch.int64), Kind.CONTROL)
        if self._holds_model and not self._sizes.model_every_round:
            return Order(None, int(whole_round))
        self._holds_model = True
        return Order(self._receive(self._sizes.model, Kind.PARAMETERS), int(whole_round))

    def mean_gradient(self, own: Tensor) -> Tensor:
        self._cluster.gather(own.to(self._cluster.wire_device), Kind.GRADIENTS)
        return self._receive(self._sizes.gradient, Kind.GRADIENTS)

    def send_measured(self, gradient: Tensor) -> None:
        with self._cluster.ledger.also_allowing(Kind.GRADIENTS):
            self._cluster.gather(gradient.to(self._cluster.wire_device), Kind.GRADIENTS)

    def send(self, update: Update) -> None:
        if self._sizes.update:
            self._cluster.gather(update.theta.to(self._cluster.wire_device), Kind.PARAMETERS)
        self._cluster.gather(update.report.pack(), Kind.CONTROL)
        self._cluster.ledger.end_round()

    def _receive(self, size: int, kind: Kind) -> Tensor:
        return self._cluster.broadcast(torch.empty(size, device=self._cluster.wire_device), kind).cpu()


class MachineGroup:
    """The machines among themselves, ranks 1..P of the job."""

    def __init__(self, cluster: Cluster, group: Any) -> None:
        self._cluster, self._group = cluster, group

    def all_to_all(self, sent: Tensor, sent_rows: list[int], received_rows: list[int]) -> Tensor:
        """The first sent_rows[0] rows go to the first machine, and so on; the rows received, machine by machine."""
        received = sent.new_empty(sum(received_rows), *sent.shape[1:])
        work = dist.all_to_all_single(received, sent, received_rows, sent_rows, group=self._group, async_op=True)
        self._cluster.wait(work)
        return received


class PeerRows:
    """Rows of features from the machines that hold them; every machine fetches at the same time, once a step."""

    def __init__(
        self, group: MachineGroup, rank_of_part: Sequence[int], own: Tensor, traffic: FeatureTraffic, ledger: Ledger
    ) -> None:
        self._group, self._own, self._traffic, self._ledger = group, own, traffic, ledger
        self._parts = sorted(range(len(rank_of_part)), key=lambda part: rank_of_part[part])  # in the order of ranks

    def fetch(self, wanted: list[Tensor]) -> list[Tensor]:
        started = time.perf_counter()
        self._ledger.count_features("rows", 0, 0)  # refuses where features must not cross
        by_machine = [wanted[part] for part in self._parts]
        asked, ones = [len(numbers) for numbers in by_machine], [1] * len(self._parts)
        wants = self._group.all_to_all(torch.tensor(asked), ones, ones).tolist()
        numbers = self._group.all_to_all(torch.cat(by_machine), asked, wants)
        rows = self._group.all_to_all(self._own[numbers], wants, asked)
        found = [rows] * len(wanted)
        for part, of_part in zip(self._parts, rows.split(asked), strict=True):
            found[part] = of_part
        self._traffic.note(wanted, found, len(wanted) - 1, time.perf_counter() - started)
        return found


def _connect_store(limit: timedelta, hosts: bool) -> dist.TCPStore:
    """The store at MASTER_ADDR:MASTER_PORT. torchrun's agent hosts it where it says so, else rank 0 does."""
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    by_agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return dist.TCPStore(address, port, is_master=hosts and not by_agent, timeout=limit, wait_for_workers=False)


def _checked(size: int) -> int:
    if not 0 < size <= _LARGEST_JSON:
        raise ProtocolError(f"a handshake message of {size} bytes")
    return size


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
