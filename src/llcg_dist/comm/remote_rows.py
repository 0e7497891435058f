"""Fetching rows of features that other machines hold, and counting the bytes that this moves.

A fetch is three messages to every other machine, also where nothing is wanted from it: how many rows, which, and the
rows themselves on their way back. All machines fetch at the same time, once a step.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from llcg_dist.comm.ledger import ROW_NUMBERS, ROWS, Direction, Ledger
from llcg_dist.comm.messages import TrainStats

COUNT_BYTES = 8
"""Size of the number that tells how many rows are wanted."""


@dataclass
class FeatureTraffic:
    """Traffic of one machine's fetches since the last `take`."""

    pairs: int = 0
    """Fetches times other machines."""
    id_bytes: int = 0
    row_bytes: int = 0
    seconds: float = 0.0

    def note(self, wanted: Sequence[Tensor], rows: Sequence[Tensor], peers: int, seconds: float = 0.0) -> None:
        self.pairs += peers
        self.id_bytes += peers * COUNT_BYTES + sum(tensor.nbytes for tensor in wanted)
        self.row_bytes += sum(tensor.nbytes for tensor in rows)
        self.seconds += seconds

    def take(self) -> "FeatureTraffic":
        """The counts so far, which start again at 0."""
        taken = FeatureTraffic(self.pairs, self.id_bytes, self.row_bytes, self.seconds)
        self.__init__()  # type: ignore[misc]
        return taken


def count_features(stats: TrainStats, ledger: Ledger, seal_bytes: int = 0) -> None:
    """Enters what a machine reports of its fetches, whose messages have a seal of so many bytes each."""
    if stats.feature_pairs:
        ledger.count_features(ROW_NUMBERS, 2 * stats.feature_pairs, stats.feature_id_bytes)
        ledger.count_features(ROWS, stats.feature_pairs, stats.feature_row_bytes)
        ledger.count_seals(seal_bytes, 3 * stats.feature_pairs, Direction.BETWEEN)


class AllToAll(Protocol):
    """The machines among themselves."""

    def all_to_all(self, sent: Tensor, sent_rows: list[int], received_rows: list[int]) -> Tensor:
        """The first sent_rows[0] rows go to the first machine, and so on; the rows received, machine by machine."""


class PeerRows:
    """Rows of features from the machines that hold them; every machine fetches at the same time, once a step."""

    def __init__(
        self, group: AllToAll, rank_of_part: Sequence[int], own: Tensor, traffic: FeatureTraffic, ledger: Ledger
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


class LoopbackRows:
    """Features of every part in one process, by part; counts what would have crossed."""

    def __init__(self, features: Mapping[int, Tensor], traffic: FeatureTraffic) -> None:
        self._features, self._traffic = features, traffic

    def fetch(self, wanted: list[Tensor]) -> list[Tensor]:
        rows = [self._features[part][numbers] for part, numbers in enumerate(wanted)]
        self._traffic.note(wanted, rows, peers=len(self._features) - 1)
        return rows
