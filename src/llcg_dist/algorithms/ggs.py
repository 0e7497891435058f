"""Global graph sampling: what PSGD-PA loses at the cut edges, bought back with bytes at every step."""

from dataclasses import replace

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.algorithms.traffic import MessageBytes, RoundTraffic
from llcg_dist.comm.ledger import Kind
from llcg_dist.data.derived import DataAccess


class Ggs(Algorithm):
    """Local steps over the whole graph: machines know its topology and fetch the features that others hold."""

    allowed_messages = frozenset({Kind.PARAMETERS, Kind.FEATURES})
    data_access = DataAccess.FULL_TOPOLOGY

    def traffic(self, sizes: MessageBytes) -> RoundTraffic:
        features = self.num_machines * self.mean_local_steps * sizes.features_per_step
        return replace(super().traffic(sizes), features=features)
