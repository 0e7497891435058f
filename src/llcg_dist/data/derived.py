"""Data derived from a partition store that some methods read in addition to the parts.

The full graph's topology (ggs, full_sync), and a halo of remote nodes for every part (subgraph_approx). Both are built
from the store's global/ folder when a job first needs them, and written into the store.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np

from llcg_dist.config.schema import Config, Verify
from llcg_dist.data.atomic_files import staged_folder, write_json
from llcg_dist.data.csr import Topology
from llcg_dist.data.graph import Graph, induced_topology, neighbours
from llcg_dist.data.rows import Array, select_rows
from llcg_dist.data.shard_checks import is_topology, require, require_edges_in_range, require_numbers
from llcg_dist.data.store import Shard, read_arrays, read_json, read_shard, write_arrays
from llcg_dist.errors import UserError


class DataAccess(StrEnum):
    """The data that a machine may read from disk and sample neighbours in."""

    PART = "part"
    """Its part alone: cut edges are dropped."""
    FULL_GRAPH = "graph"
    """The full graph, where one machine trains alone."""
    FULL_TOPOLOGY = "topology"
    """Its part, and the full graph's edges without features or labels."""
    PART_AND_HALO = "halo"
    """Its part, and nearby remote nodes with their features."""


@dataclass(frozen=True)
class FullTopology:
    """The full graph's edges, and where the features of each node are."""

    topology: Topology
    owner: Array
    """[N] the part of every node."""
    position: Array
    """[N] the row of every node within its part."""


@dataclass(frozen=True)
class Halo:
    """Remote nodes that are stored with a part."""

    topology: Topology
    """Over the part's own nodes followed by the remote ones."""
    features: Array
    """[remote nodes, F]"""


def shard_name(access: DataAccess, part: int) -> str:
    """The folder of the store that the machine of `part` opens."""
    return "global" if access is DataAccess.FULL_GRAPH else f"part{part}"


def lacks_derived(config: Config, store: Path, access: DataAccess) -> bool:
    """Whether `access` needs more than the store has."""
    if access is DataAccess.FULL_TOPOLOGY:
        return not (store / "topology").exists()
    return access is DataAccess.PART_AND_HALO and not _halo_sizes_path(config, store).exists()


def build_derived(config: Config, store: Path, access: DataAccess, say: Callable[[str], None]) -> None:
    """Builds what `access` needs and the store lacks. The caller must hold the lock on the partition root."""
    if access is DataAccess.FULL_TOPOLOGY:
        say(f"writing {store / 'topology'}")
        _write_topology(store, read_shard(store / "global"))
    else:
        say(f"storing remote nodes with every part (storage_overhead {config.algorithm.storage_overhead:g})")
        _write_halos(config, store, read_shard(store / "global"))


def read_derived(
    config: Config, access: DataAccess, store: Path, part: int, store_id: str
) -> FullTopology | Halo | None:
    """What the machine of `part` reads in addition to its part; None with DataAccess.PART."""
    if access is DataAccess.FULL_TOPOLOGY:
        return read_topology(store, store_id, config.verify)
    if access is DataAccess.PART_AND_HALO:
        return read_halo(config, store, part, store_id)
    return None


def read_topology(store: Path, store_id: str, verify: Verify) -> FullTopology:
    """Opens the store's topology/ folder, memory-mapped."""
    folder = store / "topology"
    if not folder.exists():
        raise UserError(f"{folder}: no such folder; build it with `llcg partition algorithm=ggs`, and copy it here")
    arrays = read_arrays(folder, ("indptr", "indices", "owner", "position"), store_id, verify)
    _require_topology(folder, arrays, verify)
    n = len(arrays["indptr"]) - 1
    if verify == Verify.full:
        for name in ("owner", "position"):
            require_numbers(folder, name, arrays[name], n, n)
    return FullTopology(Topology(arrays["indptr"], arrays["indices"]), arrays["owner"], arrays["position"])


def read_halo(config: Config, store: Path, part: int, store_id: str) -> Halo:
    """Opens the halo of one part, memory-mapped."""
    folder = _halo_folder(config, store, part)
    if not folder.exists():
        command = f"llcg partition algorithm=subgraph_approx algorithm.storage_overhead={_overhead(config)}"
        raise UserError(f"{folder}: no such folder; build it with `{command}`, and copy the part here")
    arrays = read_arrays(folder, ("indptr", "indices", "features"), store_id, config.verify)
    _require_topology(folder, arrays, config.verify)
    return Halo(Topology(arrays["indptr"], arrays["indices"]), arrays["features"])


def _require_topology(folder: Path, arrays: dict[str, Array], verify: Verify) -> None:
    indptr, indices = arrays["indptr"], arrays["indices"]
    require(is_topology(indptr, indices), folder, "the arrays do not fit together")
    if verify == Verify.full:
        require_edges_in_range(folder, indptr, indices)


def halo_bytes(config: Config, store: Path) -> list[int]:
    """[P] bytes that the halo adds to each part: node numbers, features and edges."""
    sizes = read_json(_halo_sizes_path(config, store)).get("bytes")
    if not isinstance(sizes, list) or not all(isinstance(size, int) for size in sizes):
        raise UserError(f"{_halo_sizes_path(config, store)}: damaged; remove it and run `llcg partition` again")
    return sizes


def halo_nodes(graph: Graph, part: Array, count: int, rng: np.random.Generator) -> Array:
    """The `count` nodes nearest to `part` in hops, ascending: all nodes at distance 1 before any at distance 2, and so
    on; of the last distance a uniform sample. Fewer where the part's connected components have no more nodes."""
    visited = np.zeros(graph.num_nodes, bool)
    visited[part] = True
    frontier, chosen = part, np.empty(0, np.int64)
    while len(chosen) < count:
        frontier = np.unique(neighbours(graph, frontier))
        frontier = frontier[~visited[frontier]]
        if len(frontier) == 0:
            break
        visited[frontier] = True
        missing = count - len(chosen)
        if len(frontier) > missing:
            frontier = rng.choice(frontier, missing, replace=False)
        chosen = np.concatenate([chosen, frontier])
    return np.sort(chosen)


def part_and_halo_nodes(
    config: Config, access: DataAccess, graph: Graph, owner: Array, part: int
) -> tuple[Array, Array]:
    """(a part's nodes, the remote nodes of its halo; none unless the method has halos), as global numbers."""
    own = np.flatnonzero(owner == part)
    if access is not DataAccess.PART_AND_HALO:
        return own, own[:0]
    rng = np.random.default_rng(np.random.SeedSequence((config.partition.seed, part)))
    return own, halo_nodes(graph, own, round(config.algorithm.storage_overhead * len(own)), rng)


def _write_topology(store: Path, global_shard: Shard) -> None:
    graph, owner = global_shard.graph, global_shard.extra["assignment"]
    position = np.empty(len(owner), graph.indices.dtype)
    for part in range(int(owner.max()) + 1):
        nodes = np.flatnonzero(owner == part)
        position[nodes] = np.arange(len(nodes))
    arrays = {"indptr": graph.indptr, "indices": graph.indices, "owner": owner, "position": position}
    with staged_folder(store / "topology") as stage:
        write_arrays(stage, arrays, global_shard.store_id)


def _write_halos(config: Config, store: Path, global_shard: Shard) -> None:
    graph, owner = global_shard.graph, global_shard.extra["assignment"]
    sizes = []
    for part in range(config.cluster.num_machines):
        own, remote = part_and_halo_nodes(config, DataAccess.PART_AND_HALO, graph, owner, part)
        topology = induced_topology(graph, np.concatenate([own, remote]))
        own_edges = len(induced_topology(graph, own).indices)
        features = select_rows(graph.features, remote)
        nodes = remote.astype(graph.indices.dtype)
        arrays = {"nodes": nodes, "features": features, "indptr": topology.indptr, "indices": topology.indices}
        folder = _halo_folder(config, store, part)
        folder.parent.mkdir(exist_ok=True)
        if not folder.exists():
            with staged_folder(folder) as stage:
                write_arrays(stage, arrays, global_shard.store_id)
        row_bytes = graph.features.dtype.itemsize * graph.num_features + nodes.itemsize
        sizes.append(len(remote) * row_bytes + (len(topology.indices) - own_edges) * nodes.itemsize)
    write_json(_halo_sizes_path(config, store), {"bytes": sizes})


def _halo_folder(config: Config, store: Path, part: int) -> Path:
    return store / f"part{part}" / "halo" / _overhead(config)


def _halo_sizes_path(config: Config, store: Path) -> Path:
    return store / f"halo-{_overhead(config)}.json"


def _overhead(config: Config) -> str:
    return f"{config.algorithm.storage_overhead:g}"
