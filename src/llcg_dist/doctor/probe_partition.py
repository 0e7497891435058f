"""Measures what this host takes for an edge, an entry or a byte, by the code that `llcg partition` runs.

A graph is drawn whose lists of neighbours are random and lead to as many nodes as the user's has, up to a limit: what
is looked up for a neighbour is then as far away in memory. Only some of its nodes have neighbours: a second is
enough.
"""

import math
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from llcg_dist.data.csr import Topology, index_dtype, require_undirected_csr
from llcg_dist.data.cut import cut_edge_counts
from llcg_dist.data.external_csr import ExternalCsr
from llcg_dist.data.graph import Graph, induced_topology
from llcg_dist.data.metis import WeightedGraph
from llcg_dist.data.rows import Array
from llcg_dist.data.stream import KERNELS, STREAM_METIS
from llcg_dist.data.workspace import Workspace
from llcg_dist.doctor.probe_files import cpu_seconds, file_rates, middle_look
from llcg_dist.doctor.rates import PartitionRates
from llcg_dist.doctor.sizes import GraphSize

_MOST_NODES = 1 << 25
"""Nodes that neighbours are drawn from. A number for each is 128 MB, more than the tables of pages that a core keeps
at hand lead to: a lookup among 24 million takes a tenth longer than among 8. The probe holds 1.3 GB then."""
_ENTRIES = 1 << 22
"""Entries of the drawn graph, and edges that are sorted: arrays of so many come from the kernel, page by page, as those
of larger graphs do."""
_ENTRIES_OF_PASS = 1 << 20
"""Entries that a pass of partition=stream looks at: it allocates nothing."""
_EDGES_OF_METIS = 1 << 19
_COMMUNITIES = 32
_CLUSTERS = 16
"""Clusters that the neighbours of a node are in."""
_METIS_PROCESS = 0.2
"""CPU seconds of a process that has imported what METIS needs."""


def drawn_topology(num_nodes: int, degree: float, entries: int) -> tuple[Graph, int]:
    """(a graph without features, some of whose nodes have about so many entries together; how many nodes these are).
    Its topology has rows for these alone."""
    rng, each = np.random.default_rng(0), max(1, round(degree))
    rows = max(1, min(num_nodes, entries // each))
    dtype = index_dtype(num_nodes, rows * each)
    indices = rng.integers(num_nodes, size=rows * each, dtype=dtype)
    nothing, split = np.zeros((num_nodes, 0), np.float32), np.ones(num_nodes, np.int8)
    indptr = np.arange(rows + 1, dtype=dtype) * dtype(each)
    return Graph(indptr, indices, nothing, np.zeros(num_nodes, np.int64), split, num_classes=1), rows


def measure_partition(
    size: GraphSize, num_parts: int, scratch: Path, start: float, with_metis: bool = False
) -> PartitionRates:
    """`scratch`: a folder on the disk that the store will be on; `start`: what this process took to begin."""
    num_nodes = max(_CLUSTERS, min(size.nodes, _MOST_NODES))
    graph, rows = drawn_topology(num_nodes, size.degree, min(size.entries, _ENTRIES))
    entries, assignment = len(graph.indices), (np.arange(num_nodes) % num_parts).astype(np.int32)
    num_edges = max(1, min(size.edges, _ENTRIES))

    def look(folder: Path) -> dict[str, float]:
        edges, _ = _edge_rates(num_edges, size.degree, folder)
        return {
            **file_rates(folder),
            **edges,
            "check_entry": cpu_seconds(lambda: require_undirected_csr(graph.indptr, graph.indices, _accept)) / entries,
            "count_entry": cpu_seconds(lambda: cut_edge_counts(graph, assignment, num_parts)) / entries,
            "induce_entry": _inducing(graph, num_nodes, rows),
            **_stream_rates(graph, assignment, num_parts),
        }

    with tempfile.TemporaryDirectory(prefix=".llcg-probe-", dir=scratch) as folder:
        rates = middle_look(look, Path(folder))
        metis = _metis(size, num_parts, Path(folder)) if with_metis else 0.0
    return PartitionRates(start=start, metis_entry=metis, **rates)


def _accept(holds: bool, rule: str) -> None:
    """The drawn graph is directed and has duplicates: the checks shall run to their end."""


def _edge_rates(num_edges: int, degree: float, folder: Path) -> tuple[dict[str, float], Topology]:
    """(what an edge takes that is found and added, and an entry that is sorted; the graph with communities)."""
    import pandas as pd

    from llcg_dist.data.datasets.nodes import NodeIds

    rng = np.random.default_rng(0)
    num_nodes = max(_COMMUNITIES, round(2 * num_edges / max(1.0, degree)))
    src = rng.integers(num_nodes, size=num_edges, dtype=np.int32)
    near = rng.integers(num_nodes // _COMMUNITIES, size=num_edges, dtype=np.int32) * _COMMUNITIES + src % _COMMUNITIES
    dst = np.where(rng.random(num_edges) < 0.8, near, rng.integers(num_nodes, size=num_edges, dtype=np.int32))
    ids = NodeIds.numbered(Path("edges"), num_nodes)
    csr = ExternalCsr(Workspace(folder, memory=1 << 40), num_nodes, num_edges)
    moments = [time.process_time()]
    ends = [ids.index_of(pd.Series(nodes), lambda row: "") for nodes in (src, dst)]
    moments.append(time.process_time())
    csr.add(*ends)
    moments.append(time.process_time())
    topology = csr.finish()
    moments.append(time.process_time())
    find, add, sort = (max(taken, 1e-9) for taken in np.diff(moments).tolist())
    entries_and_bits = 2 * num_edges * math.log2(2 * num_edges + 2)
    rates = {"find_edge": find / num_edges, "add_edge": add / num_edges, "sort_entry": sort / entries_and_bits}
    return rates, topology


def _inducing(graph: Graph, num_nodes: int, rows: int) -> float:
    """Of the nodes that have neighbours; the numbers of all others are made anew for every part, too."""
    empty = np.full(num_nodes - rows, graph.indptr[-1], graph.indptr.dtype)
    whole = Graph(np.concatenate([graph.indptr, empty]), graph.indices, graph.features, graph.labels, graph.split, 1)
    nodes, none = np.arange(rows), np.arange(0)
    taken = cpu_seconds(lambda: induced_topology(whole, nodes)) - cpu_seconds(lambda: induced_topology(whole, none))
    return max(taken, 1e-9) / len(graph.indices)


def _stream_rates(graph: Graph, assignment: Array, num_parts: int) -> dict[str, float]:
    """Passes of partition=stream over some of the nodes that have neighbours."""
    kernels, num_nodes = KERNELS.load(), len(assignment)
    rows = max(1, min(len(graph.indptr) - 1, int(np.searchsorted(graph.indptr, _ENTRIES_OF_PASS))))
    entries, dtype = int(graph.indptr[rows]), graph.indices.dtype
    indptr, indices = graph.indptr.view(), graph.indices.view()
    for array in (indptr, indices):
        array.flags.writeable = False  # as mapped ones are: to the kernels that is a type of its own
    numbers = np.arange(num_nodes + 1, dtype=dtype)
    order, alone, cluster = numbers[:rows], numbers[:-1], numbers[:-1] % _CLUSTERS
    units = kernels.Units(indptr, indices, numbers, alone, np.zeros(num_nodes, dtype))

    def merge(limit: int) -> float:
        ones, zeros = np.ones(num_nodes, dtype), np.zeros(num_nodes, dtype)
        tally, waiting = np.stack([ones, zeros], axis=1), np.full(num_nodes + 1, -1, dtype)
        clusters = kernels.Clusters(alone.copy(), tally, zeros, waiting)
        pass_ = (units, clusters, order, limit, np.uint64(1), False)
        return cpu_seconds(lambda: kernels.merge_units(*pass_), repeats=1) / entries

    members, starts = np.empty(rows, dtype), np.empty(_CLUSTERS + 1, dtype)
    kernels.group_nodes(cluster[:rows], starts, members)
    grouped = kernels.Units(indptr, indices, starts, members, np.zeros(_CLUSTERS, dtype))
    coarse = [np.empty(length, np.int64) for length in (_CLUSTERS + 1, _CLUSTERS**2, _CLUSTERS**2)]
    load, room = np.full((num_parts, 1), num_nodes // num_parts), np.full(1, num_nodes)
    kinds, part = np.zeros(num_nodes, np.int64), assignment.copy()
    merge(1)  # numba's first call takes longer
    return {
        "merge": merge(num_nodes),
        "contract": cpu_seconds(lambda: kernels.contract(grouped, cluster, *coarse)) / entries,
        "restream": cpu_seconds(lambda: kernels.restream(indptr, indices, order, part, kinds, load, room, 0.0))
        / entries,
    }


def _metis(size: GraphSize, num_parts: int, folder: Path) -> float:
    """pymetis', whose process has little to import; DGL's is the same METIS."""
    _, topology = _edge_rates(max(1, min(size.edges, _EDGES_OF_METIS)), size.degree, folder)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ones = np.ones(len(topology.indices), np.int64)
    indptr, indices = (array.astype(np.int64) for array in (topology.indptr, topology.indices))
    weighted = WeightedGraph(indptr, indices, ones, ones[: len(indptr) - 1, None])
    STREAM_METIS.parts_of_weighted(weighted, num_parts, folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return max(taken - _METIS_PROCESS, 0.1 * taken) / len(topology.indices)
