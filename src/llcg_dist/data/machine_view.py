"""Builds the view that a machine trains on from its shard and its derived data."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from llcg_dist.config.schema import Config, Verify
from llcg_dist.data.derived import FullTopology, Halo
from llcg_dist.data.feature_cache import CachedRows
from llcg_dist.data.shard_checks import require, require_numbers
from llcg_dist.data.store import Shard
from llcg_dist.data.views import GlobalView, GraphView, HaloView, RowSource, View


def part_view(
    config: Config,
    part: int,
    shard: Shard,
    derived: FullTopology | Halo | None,
    remote: Callable[[Tensor], RowSource],
) -> View:
    """`remote(own features)` returns the source of other machines' feature rows, for methods that fetch them."""
    graph, folder = shard.graph, Path(f"part{part}")
    if isinstance(derived, Halo):
        fits = len(derived.topology.indptr) - 1 == graph.num_nodes + len(derived.features)
        require(fits, folder / "halo", "it does not fit to the part")
        return HaloView(graph, derived.topology, derived.features)
    if isinstance(derived, FullTopology):
        if config.verify == Verify.full:
            require_numbers(folder, "nodes", shard.extra["nodes"], graph.num_nodes, len(derived.owner))
        rows = remote(torch.from_numpy(graph.features))
        if config.algorithm.feature_cache:
            rows = CachedRows(rows, derived.owner, config.algorithm.feature_cache)
        return GlobalView(graph, part, shard.extra["nodes"], derived, rows)
    return GraphView(graph)
