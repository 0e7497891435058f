"""What some methods read besides the parts: the whole topology (ggs, full_sync), or a halo of remote nodes with every
part (subgraph_approx). Built from a store's global/ folder when first needed, into the store.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np

from llcg_dist.config.schema import Config
from llcg_dist.data.atomic_files import staged_folder, write_json
from llcg_dist.data.csr import Topology
from llcg_dist.data.graph import Graph, induced_topology, neighbours
from llcg_dist.data.rows import Array, select_rows
from llcg_dist.data.store import Shard, read_arrays, read_json, read_shard, write_arrays
from llcg_dist.errors import UserError


class DataAccess(StrEnum):
    """What a machine samples from."""

    PART = "part"
    FULL_GRAPH = "graph"
    FULL_TOPOLOGY = "topology"
    PART_AND_HALO = "halo"


@dataclass(frozen=True)
class FullTopology:
    topology: Topology
    owner: Array
    """[N] the part of every node."""
    position: Array
    """[N] its row there."""


@dataclass(frozen=True)
class Halo:
    topology: Topology
    """Of the part's own nodes and, after them, the remote ones."""
    features: Array
    """Of the remote nodes."""


def shard_name(access: DataAccess, part: int) -> str:
    """The folder of the store that the machine of `part` opens."""
    return "global" if access is DataAccess.FULL_GRAPH else f"part{part}"


def ensure_derived(config: Config, store: Path, access: DataAccess, say: Callable[[str], None]) -> None:
    """Builds what `reads` needs and the store lacks. The caller holds the lock on the store's folder."""
    if access is DataAccess.FULL_TOPOLOGY and not (store / "topology").exists():
        say(f"writing {store / 'topology'}")
        _write_topology(store, read_shard(store / "global"))
    if access is DataAccess.PART_AND_HALO and not _halo_sizes_path(config, store).exists():
        say(f"storing remote nodes with every part (storage_overhead {config.algorithm.storage_overhead:g})")
        _write_halos(config, store, read_shard(store / "global"))


def read_derived(
    config: Config, access: DataAccess, store: Path, part: int, store_id: str
) -> FullTopology | Halo | None:
    """What the machine of `part` reads besides its part."""
    if access is DataAccess.FULL_TOPOLOGY:
        return read_topology(store, store_id, config.verify)
    if access is DataAccess.PART_AND_HALO:
        return read_halo(config, store, part, store_id)
    return None


def read_topology(store: Path, store_id: str, verify: str) -> FullTopology:
    folder = store / "topology"
    if not folder.exists():
        raise UserError(f"{folder}: no such folder; build it with `llcg partition algorithm=ggs`, and copy it here")
    arrays = read_arrays(folder, ("indptr", "indices", "owner", "position"), store_id, verify)
    return FullTopology(Topology(arrays["indptr"], arrays["indices"]), arrays["owner"], arrays["position"])


def read_halo(config: Config, store: Path, part: int, store_id: str) -> Halo:
    folder = _halo_folder(config, store, part)
    if not folder.exists():
        command = f"llcg partition algorithm=subgraph_approx algorithm.storage_overhead={_overhead(config)}"
        raise UserError(f"{folder}: no such folder; build it with `{command}`, and copy the part here")
    arrays = read_arrays(folder, ("indptr", "indices", "features"), store_id, config.verify)
    return Halo(Topology(arrays["indptr"], arrays["indices"]), arrays["features"])


def halo_bytes(config: Config, store: Path) -> list[int]:
    """What each part's halo adds to it: node numbers, features and edges."""
    sizes = read_json(_halo_sizes_path(config, store)).get("bytes")
    if not isinstance(sizes, list) or not all(isinstance(size, int) for size in sizes):
        raise UserError(f"{_halo_sizes_path(config, store)}: damaged; remove it and run `llcg partition` again")
    return sizes


def halo_nodes(graph: Graph, part: Array, count: int, rng: np.random.Generator) -> Array:
    """`count` nodes outside of `part`, as near to it as there are: all of a ring of neighbours before any of the next,
    and of the last ring a uniform sample. Fewer where the part reaches no more."""
    seen = np.zeros(graph.num_nodes, bool)
    seen[part] = True
    ring, chosen = part, np.empty(0, np.int64)
    while len(chosen) < count:
        ring = np.unique(neighbours(graph, ring))
        ring = ring[~seen[ring]]
        if len(ring) == 0:
            break
        seen[ring] = True
        missing = count - len(chosen)
        if len(ring) > missing:
            ring = rng.choice(ring, missing, replace=False)
        chosen = np.concatenate([chosen, ring])
    return np.sort(chosen)


def nodes_read(config: Config, access: DataAccess, graph: Graph, owner: Array, part: int) -> tuple[Array, Array]:
    """The nodes of a part, and the remote ones that are stored with it."""
    own = np.flatnonzero(owner == part)
    if access is not DataAccess.PART_AND_HALO:
        return own, own[:0]
    rng = np.random.default_rng(np.random.SeedSequence((config.partition.seed, part)))
    return own, halo_nodes(graph, own, round(config.algorithm.storage_overhead * len(own)), rng)


def _write_topology(store: Path, whole: Shard) -> None:
    owner = whole.extra["assignment"]
    position = np.empty(len(owner), whole.graph.indices.dtype)
    for part in range(int(owner.max()) + 1):
        nodes = np.flatnonzero(owner == part)
        position[nodes] = np.arange(len(nodes))
    arrays = {"indptr": whole.graph.indptr, "indices": whole.graph.indices, "owner": owner, "position": position}
    with staged_folder(store / "topology") as stage:
        write_arrays(stage, arrays, whole.store_id)


def _write_halos(config: Config, store: Path, whole: Shard) -> None:
    graph, owner = whole.graph, whole.extra["assignment"]
    sizes = []
    for part in range(config.cluster.num_machines):
        own, remote = nodes_read(config, DataAccess.PART_AND_HALO, graph, owner, part)
        topology = induced_topology(graph, np.concatenate([own, remote]))
        own_edges = len(induced_topology(graph, own).indices)
        features = select_rows(graph.features, remote)
        nodes = remote.astype(graph.indices.dtype)
        arrays = {"nodes": nodes, "features": features, "indptr": topology.indptr, "indices": topology.indices}
        folder = _halo_folder(config, store, part)
        folder.parent.mkdir(exist_ok=True)
        if not folder.exists():
            with staged_folder(folder) as stage:
                write_arrays(stage, arrays, whole.store_id)
        row = graph.features.dtype.itemsize * graph.num_features + nodes.itemsize
        sizes.append(len(remote) * row + (len(topology.indices) - own_edges) * nodes.itemsize)
    write_json(_halo_sizes_path(config, store), {"bytes": sizes})


def _halo_folder(config: Config, store: Path, part: int) -> Path:
    return store / f"part{part}" / "halo" / _overhead(config)


def _halo_sizes_path(config: Config, store: Path) -> Path:
    return store / f"halo-{_overhead(config)}.json"


def _overhead(config: Config) -> str:
    return f"{config.algorithm.storage_overhead:g}"
