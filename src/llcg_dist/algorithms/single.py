"""One machine with the full graph: what distributed training is measured against."""

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.data.derived import DataAccess


class Single(Algorithm):
    """Rank 0 trains on the full graph with batches of P·B_L: a round sees as many examples as P machines would."""

    trains_on_parts = False
    data_access = DataAccess.FULL_GRAPH
    num_machines = 1

    @property
    def local_batch_size(self) -> int:
        return self.config.train.local_batch_size * self.config.cluster.num_machines
