"""The channel between real processes: what server and machines say to each other, over a Cluster's collectives."""

import time
from collections.abc import Sequence

import torch
from torch import Tensor

from llcg_dist.comm.channel import Order, Report, Sizes, Update
from llcg_dist.comm.features import FeatureTraffic, count_features
from llcg_dist.comm.ledger import ROWS, Kind, Ledger
from llcg_dist.comm.torch_dist import Cluster, MachineGroup


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


class PeerRows:
    """Rows of features from the machines that hold them; every machine fetches at the same time, once a step."""

    def __init__(
        self, group: MachineGroup, rank_of_part: Sequence[int], own: Tensor, traffic: FeatureTraffic, ledger: Ledger
    ) -> None:
        self._group, self._own, self._traffic, self._ledger = group, own, traffic, ledger
        self._parts = sorted(range(len(rank_of_part)), key=lambda part: rank_of_part[part])  # in the order of ranks

    def fetch(self, wanted: list[Tensor]) -> list[Tensor]:
        started = time.perf_counter()
        self._ledger.count_features(ROWS, 0, 0)  # refuses where features must not cross
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
