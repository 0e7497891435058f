"""What one machine trains on, opened from the store."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from llcg_dist.data.extras import Reads, read_halo, read_topology
from llcg_dist.data.feature_cache import CachedRows
from llcg_dist.data.store import Shard
from llcg_dist.data.views import GlobalView, GraphView, HaloView, RowSource, View
from llcg_dist.schema import Config


def part_view(
    config: Config, reads: Reads, store: Path, part: int, shard: Shard, remote: Callable[[Tensor], RowSource]
) -> View:
    """`remote(own features)` gives access to the features of the others, where the method may ask for them."""
    graph = shard.graph
    if reads is Reads.PART_AND_HALO:
        halo = read_halo(config, store, part, shard.store_id)
        return HaloView(graph, halo.topology, halo.features)
    if reads is Reads.WHOLE_TOPOLOGY:
        whole = read_topology(store, shard.store_id, config.verify)
        rows = remote(torch.from_numpy(graph.features))
        if config.algorithm.feature_cache:
            rows = CachedRows(rows, whole.owner, config.algorithm.feature_cache)
        return GlobalView(graph, part, shard.extra["nodes"], whole.topology, whole.owner, whole.position, rows)
    return GraphView(graph)
