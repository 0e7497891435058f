"""partition=stream: few cut edges with a few numbers for every node, over a topology that stays mapped on disk.

1. Size-constrained label propagation merges nodes into clusters, and these into larger ones, until their graph is small
   (Meyerhenke, Sanders, Schulz: Partitioning Complex Networks via Size-constrained Clustering, 2014).
2. METIS cuts the graph of the clusters.
3. Restreaming (Nishimura, Ugander: Restreaming Graph Partitioning, 2013): pass after pass, every node takes the part
   that most of its neighbours are in, as far as that part has room.

Every pass reads the topology once, in blocks of rows whose order the seed draws.
"""

from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from llcg_dist import seeding
from llcg_dist.data.csr import Topology
from llcg_dist.data.kernel_cache import KernelModule
from llcg_dist.data.metis import Metis, WeightedGraph
from llcg_dist.data.rows import Array, frozen

KERNELS = KernelModule("llcg_dist.data.stream_kernels", caller=__name__)

STREAM_METIS = Metis("pymetis")
"""DGL's takes no weights of edges."""

MOST_ENTRIES = 1 << 23
"""Entries of the graph of clusters that METIS may get: it needs 0.5 GB for so many. A constant, not a share of the free
memory, so that the parts are the same on every host."""

_ENTRIES_PER_CLUSTER = 8
"""A cluster counts as so many entries."""
_CLUSTERS_PER_PART = 32
"""A cluster has at most 1/32 of a part's nodes; METIS balances pieces of that size well."""
_FEWEST_CLUSTERS_PER_PART = 4
_MERGING_PASSES = 6
_LOSSES = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0)
"""Restreaming passes, each with the share of a node's neighbours that balance may cost; the last ones end balanced."""
_FEW_MOVES = 0.001
"""Restreaming ends when a smaller share of the nodes moves."""
_IMBALANCE = 1.03
"""The most nodes of a part, in terms of the mean: METIS's own tolerance."""
_BLOCK = 1024
"""Neighbouring rows that are visited together."""


def stream_parts(
    topology: Topology,
    num_parts: int,
    seed: int,
    types: Array | None = None,
    scratch: Path | None = None,
    most_entries: int = MOST_ENTRIES,
) -> Array:
    """[N] int32: the part of every node; deterministic for a topology and a seed.

    Parts have equal numbers of nodes, and of nodes of each type where `types` [N] is given. Temporary files of METIS go
    to `scratch`.
    """
    rng = seeding.partition_generator(seed)
    kinds = np.zeros(topology.num_nodes, np.int64) if types is None else types
    cluster, coarse = _coarsen(topology, num_parts, kinds, most_entries, rng)
    if coarse is None:  # runs of clusters, which are numbered by their first nodes
        sizes = np.bincount(cluster)
        of_cluster = (np.cumsum(sizes) - sizes) * num_parts // topology.num_nodes
    else:
        of_cluster = STREAM_METIS.parts_of_weighted(coarse, num_parts, scratch)
    part = of_cluster[cluster].astype(np.int32)
    del cluster, coarse
    _restream(topology, part, num_parts, kinds, rng)
    return part


def _coarsen(
    topology: Topology, num_parts: int, types: Array, most_entries: int, rng: np.random.Generator
) -> tuple[Array, WeightedGraph | None]:
    """([N] the cluster of every node, the graph of the clusters; None where it never gets small enough)."""
    num_nodes = topology.num_nodes
    units = _units(topology, np.arange(num_nodes, dtype=topology.indices.dtype), num_nodes)
    per_part = _CLUSTERS_PER_PART
    while True:
        before = len(units.starts)
        cluster, count = _merged(units, max(1, num_nodes // (num_parts * per_part)), rng)
        units = _units(topology, cluster, count)
        coarse = _contracted(units, cluster, types, most_entries)
        if coarse is not None or per_part < _FEWEST_CLUSTERS_PER_PART:
            return cluster, coarse
        if count > 0.9 * before:  # hardly fewer: larger ones are allowed
            per_part //= 2


def _units(topology: Topology, unit: Array, count: int) -> Any:
    """Units from the unit of every node; how many entries are inside of each is not yet known."""
    starts, members = np.empty(count + 1, unit.dtype), np.empty_like(unit)
    _kernels().group_nodes(unit, starts, members)
    inner = np.zeros(count, unit.dtype)
    return _kernels().Units(frozen(topology.indptr), frozen(topology.indices), starts, members, inner)


def _merged(units: Any, limit: int, rng: np.random.Generator) -> tuple[Array, int]:
    """([N] the cluster of every node, how many there are): units merged into clusters of at most `limit` nodes."""
    count, dtype = len(units.starts) - 1, units.members.dtype
    of_node = np.empty_like(units.members)
    of_node[units.members] = np.repeat(np.arange(count, dtype=dtype), np.diff(units.starts))
    clusters = _kernels().Clusters(
        of_node=of_node,
        tally=np.stack([np.diff(units.starts), np.zeros(count, dtype)], axis=1),
        touched=np.empty(count, dtype),
        waiting=np.full(count + 1, -1, dtype),
    )
    for number in range(_MERGING_PASSES):
        last = number == _MERGING_PASSES - 1
        order, key = _order(count, dtype, rng), rng.integers(2**63, dtype=np.uint64)
        _kernels().merge_units(units, clusters, order, limit, key, last)
    used = clusters.tally[:, 0] > 0
    number_of = np.cumsum(used, dtype=dtype) - dtype.type(1)
    return number_of[of_node], int(used.sum())


def _contracted(units: Any, cluster: Array, types: Array, most_entries: int) -> WeightedGraph | None:
    """The graph of the units; None where it is too large. Counts the entries inside of each unit, too."""
    count, num_types = len(units.starts) - 1, int(types.max()) + 1
    indptr = np.empty(count + 1, np.int64)
    indices, weights = (np.empty(most_entries, np.int64) for _ in range(2))  # what is not written takes no memory
    filled = _kernels().contract(units, cluster, indptr, indices, weights)
    if max(filled, count * _ENTRIES_PER_CLUSTER) > most_entries:
        return None
    of_each = np.bincount(cluster * np.int64(num_types) + types, minlength=count * num_types)
    return WeightedGraph(indptr, indices[:filled], weights[:filled], of_each.reshape(count, num_types))


def _restream(topology: Topology, part: Array, num_parts: int, types: Array, rng: np.random.Generator) -> None:
    """Improves the parts in place, and balances them."""
    num_types = int(types.max()) + 1
    load = np.bincount(part * np.int64(num_types) + types, minlength=num_parts * num_types)
    load = load.reshape(num_parts, num_types)
    room = np.ceil(_IMBALANCE * load.sum(axis=0) / num_parts).astype(np.int64)
    rows = frozen(topology.indptr), frozen(topology.indices)
    for loss in _LOSSES:
        order = _order(len(part), rows[1].dtype, rng)
        moved = _kernels().restream(*rows, order, part, types, load, room, loss)
        if moved <= _FEW_MOVES * len(part) and (load <= room).all():
            break


def _order(count: int, dtype: Any, rng: np.random.Generator) -> Array:
    """[count] numbers 0..count-1, in blocks of neighbouring ones whose order is drawn."""
    blocks = rng.permutation(-(-count // _BLOCK)).astype(dtype)
    order = (blocks[:, None] * dtype.type(_BLOCK) + np.arange(_BLOCK, dtype=dtype)).ravel()
    return order[order < count]


@cache
def _kernels() -> ModuleType:
    return KERNELS.load()


def call_all() -> None:
    """Calls every kernel once for each type of index, which compiles it, or loads it from the cache."""
    from llcg_dist.data import stream_kernels as module

    for dtype in (np.int32, np.int64):
        indptr, indices = frozen(np.array([0, 1, 2], dtype)), frozen(np.array([1, 0], dtype))
        numbers, zeros = np.arange(2, dtype=dtype), np.zeros(2, dtype)
        units = module.Units(indptr, indices, np.arange(3, dtype=dtype), numbers, zeros.copy())
        tally = np.array([[1, 0], [1, 0]], dtype)
        clusters = module.Clusters(numbers.copy(), tally, numbers.copy(), np.full(3, -1, dtype))
        module.merge_units(units, clusters, numbers, 2, np.uint64(1), True)
        module.group_nodes(numbers, np.empty(3, dtype), np.empty(2, dtype))
        module.contract(units, numbers, *(np.empty(size, np.int64) for size in (3, 2, 2)))
        load, room = np.ones((2, 1), np.int64), np.full(1, 2)
        part, types = np.arange(2, dtype=np.int32), np.zeros(2, np.int64)
        module.restream(indptr, indices, numbers, part, types, load, room, 0.0)
