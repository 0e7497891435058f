"""Which nodes the server's correction draws its mini-batches from (Figure 9 of the paper compares the two)."""

import numpy as np

from llcg_dist.data.graph import TRAIN, Array, cut_edge_ends
from llcg_dist.data.store import Shard
from llcg_dist.errors import UserError


def correction_nodes(minibatch: str, whole: Shard) -> Array | None:
    """`uniform`: None, all training nodes. `cut_edges`: training nodes that lie at an end of a cut edge."""
    if minibatch == "uniform":
        return None
    ends = cut_edge_ends(whole.graph, whole.extra["assignment"])
    nodes = np.flatnonzero(ends & (whole.graph.split == TRAIN))
    if len(nodes) == 0:
        raise UserError("sampling.server_minibatch=cut_edges: no training node has a cut edge; use uniform")
    return nodes
