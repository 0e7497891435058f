"""The channel between real processes: what server and machines say to each other, over a Cluster's collectives."""

import time
from collections.abc import Sequence

import torch
from torch import Tensor

from llcg_dist.comm.envelope import Envelope
from llcg_dist.comm.ledger import ROWS, Kind, Ledger
from llcg_dist.comm.messages import MessageSizes, TrainRequest, TrainStats, Update
from llcg_dist.comm.remote_rows import FeatureTraffic, count_features
from llcg_dist.comm.torch_dist import Cluster, MachineGroup


class DistServerChannel:
    """The server's end. `rank_of_part[p]` is the rank that trains part p. What was gathered lies where the next will
    arrive: it is to be used before."""

    parallel = True

    def __init__(self, cluster: Cluster, rank_of_part: Sequence[int], sizes: MessageSizes) -> None:
        self._cluster, self._rank_of_part, self._sizes = cluster, list(rank_of_part), sizes
        self._orders = _orders(cluster, sizes)
        self._updates = {rank: _update(cluster, sizes) for rank in rank_of_part}
        self._gradients: dict[int, Envelope] = {}
        self.ledger = cluster.ledger

    def broadcast(self, request: TrainRequest) -> None:
        envelope = self._orders[request.theta is not None]
        envelope.control.fill_(request.durable_round)
        if request.theta is not None:
            envelope.content.copy_(request.theta)
        self._cluster.broadcast_envelope(envelope, Kind.PARAMETERS)

    def gather_gradients(self, round_: int) -> Sequence[Tensor]:
        return self._gradients_of_all()

    def broadcast_gradient(self, mean: Tensor) -> None:
        self._cluster.broadcast(mean.to(self._cluster.wire_device), Kind.GRADIENTS)

    def gather_measured(self) -> Sequence[Tensor]:
        with self.ledger.also_allowing(Kind.GRADIENTS):
            return self._gradients_of_all()

    def gather(self, round_: int) -> Sequence[Update]:
        self._cluster.collect(None, self._updates, Kind.PARAMETERS)
        arrived = [self._updates[rank] for rank in self._rank_of_part]
        updates = [Update(envelope.content.cpu(), TrainStats.unpack(envelope.control)) for envelope in arrived]
        for update in updates:
            count_features(update.stats, self.ledger)
        return updates

    def _gradients_of_all(self) -> list[Tensor]:
        """One from every machine, in part order."""
        if not self._gradients:  # few methods send any
            self._gradients = {rank: _gradient(self._cluster, self._sizes) for rank in self._rank_of_part}
        self._cluster.collect(None, self._gradients, Kind.GRADIENTS)
        return [self._gradients[rank].content.cpu() for rank in self._rank_of_part]


class DistMachineChannel:
    """A machine's end. It knows the size of the model, and nothing of the other machines."""

    def __init__(self, cluster: Cluster, sizes: MessageSizes) -> None:
        self._cluster, self._sizes = cluster, sizes
        self._orders, self._update = _orders(cluster, sizes), _update(cluster, sizes)
        self._gradient: Envelope | None = None
        self._holds_model = False

    def receive(self) -> TrainRequest:
        brings_model = self._sizes.model_every_round or not self._holds_model
        envelope = self._orders[brings_model]
        self._cluster.broadcast_envelope(envelope, Kind.PARAMETERS)
        self._holds_model = True
        return TrainRequest(envelope.content.cpu() if brings_model else None, int(envelope.control))

    def mean_gradient(self, own: Tensor) -> Tensor:
        envelope = self._send_gradient(own)
        return self._cluster.broadcast(envelope.content, Kind.GRADIENTS).cpu()

    def send_measured(self, gradient: Tensor) -> None:
        with self._cluster.ledger.also_allowing(Kind.GRADIENTS):
            self._send_gradient(gradient)

    def _send_gradient(self, gradient: Tensor) -> Envelope:
        self._gradient = self._gradient or _gradient(self._cluster, self._sizes)
        self._gradient.content.copy_(gradient)
        self._cluster.collect(self._gradient, {}, Kind.GRADIENTS)
        return self._gradient

    def send(self, update: Update) -> None:
        self._update.content.copy_(update.theta)
        self._update.control.copy_(update.stats.pack())
        self._cluster.collect(self._update, {}, Kind.PARAMETERS)
        self._cluster.ledger.end_round()


def _orders(cluster: Cluster, sizes: MessageSizes) -> dict[bool, Envelope]:
    """One that brings the model, and one that does not."""
    control, device = torch.zeros(1, dtype=torch.int64), cluster.wire_device
    return {model: Envelope(control, sizes.model if model else 0, sizes.dtype, device) for model in (True, False)}


def _update(cluster: Cluster, sizes: MessageSizes) -> Envelope:
    control = torch.zeros(TrainStats.size(), dtype=torch.float64)
    return Envelope(control, sizes.update, sizes.dtype, cluster.wire_device)


def _gradient(cluster: Cluster, sizes: MessageSizes) -> Envelope:
    return Envelope(torch.zeros(0, dtype=torch.int64), sizes.gradient, torch.float32, cluster.wire_device)


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
