"""What fetching remote features costs, counted where they are asked for.

A fetch is three messages to every other machine, also where nothing is wanted from it: how many rows, which, and the
rows themselves on their way back. All machines fetch at the same time, once a step.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from llcg_dist.comm.ledger import ROW_NUMBERS, ROWS, Ledger
from llcg_dist.comm.messages import TrainStats

COUNT_BYTES = 8
"""Of the number that says how many rows are wanted."""


@dataclass
class FeatureTraffic:
    """What one machine's fetches moved since the last `take`."""

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


def count_features(report: TrainStats, ledger: Ledger) -> None:
    """Enters what a machine reports of its fetches."""
    if report.feature_pairs:
        ledger.count_features(ROW_NUMBERS, 2 * report.feature_pairs, report.feature_id_bytes)
        ledger.count_features(ROWS, report.feature_pairs, report.feature_row_bytes)
