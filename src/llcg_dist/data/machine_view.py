"""What one machine trains on, from what it opened of the store."""

from collections.abc import Callable

import torch
from torch import Tensor

from llcg_dist.config.schema import Config
from llcg_dist.data.derived import FullTopology, Halo
from llcg_dist.data.feature_cache import CachedRows
from llcg_dist.data.store import Shard
from llcg_dist.data.views import GlobalView, GraphView, HaloView, RowSource, View


def part_view(
    config: Config,
    part: int,
    shard: Shard,
    extras: FullTopology | Halo | None,
    remote: Callable[[Tensor], RowSource],
) -> View:
    """`remote(own features)` gives access to the features of the others, where the method may ask for them."""
    graph = shard.graph
    if isinstance(extras, Halo):
        return HaloView(graph, extras.topology, extras.features)
    if isinstance(extras, FullTopology):
        rows = remote(torch.from_numpy(graph.features))
        if config.algorithm.feature_cache:
            rows = CachedRows(rows, extras.owner, config.algorithm.feature_cache)
        return GlobalView(graph, part, shard.extra["nodes"], extras.topology, extras.owner, extras.position, rows)
    return GraphView(graph)
