"""Global graph sampling: what PSGD-PA loses at the cut edges, bought back with bytes at every step."""

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.comm.ledger import Kind
from llcg_dist.data.derived import DataAccess


class Ggs(Algorithm):
    """Local steps over the whole graph: machines know its topology and fetch the features that others hold."""

    allowed_messages = frozenset({Kind.PARAMETERS, Kind.FEATURES})
    data_access = DataAccess.FULL_TOPOLOGY
