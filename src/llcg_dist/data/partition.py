"""Partitions a graph into P parts and writes the partition store that ranks load."""

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from llcg_dist import __version__
from llcg_dist.config.compare import fingerprint, flat_items
from llcg_dist.config.dataset import DatasetConfig
from llcg_dist.config.files import FilesConfig
from llcg_dist.config.partition import NodeOrder, PartitionConfig, PartitionMethod
from llcg_dist.config.schema import Config
from llcg_dist.data.atomic_files import make_folder, staged_folder, write_json
from llcg_dist.data.cut import cut_edge_counts
from llcg_dist.data.datasets import content_hashes, load_dataset
from llcg_dist.data.derived import DataAccess, build_derived, lacks_derived
from llcg_dist.data.graph import TRAIN, Graph, induced_subgraph
from llcg_dist.data.metis import choose_metis
from llcg_dist.data.parts import assign_parts, settle_method
from llcg_dist.data.rows import Array
from llcg_dist.data.store import SCHEMA_VERSION, extend_shard, file_sha256, read_manifest, read_shard, write_shard
from llcg_dist.data.stream import STREAM_METIS
from llcg_dist.data.whole_graph import order_by_parts, with_features_of_type
from llcg_dist.data.workspace import Workspace, memory_for_loading
from llcg_dist.errors import UserError

_NOT_OF_THE_GRAPH = {"root", "memory"}
"""Settings of the dataset and of the partition that neither graph nor parts depend on."""

_STORE_OPTIONS = {"features_dtype", "order", "label_noise"}
"""Settings of the dataset and of the partition that count only where they are not the default. Whatever is added to
these sections belongs here, and its default must leave graph and parts as they are: older stores are found then."""


def store_path(config: Config) -> Path:
    """<partition.root>/<dataset>-<partitioner>-<P>-<seed>, computed from the settings without reading a file.

    <dataset> is the source and, where it has several graphs, the name (planetoid_Cora); settings other than the
    defaults add a hash of the dataset's settings, or of the partition's. dataset.root has no influence.
    """
    dataset = config.dataset
    label = dataset.name if dataset.name == dataset.source else f"{dataset.source}_{dataset.name}"
    defaults = type(dataset)(source=dataset.source, name=dataset.name)
    if _dataset_identity(dataset) != _dataset_identity(defaults):
        label += f"_{fingerprint(dataset, ignore=_ignored(dataset))[:8]}"
    partition = config.partition
    method = str(partition.method)
    if replace(partition, seed=0, root="") != PartitionConfig(partition.method, root=""):
        method += f"_{fingerprint(partition, ignore=_ignored(partition) | {'seed'})[:8]}"
    return Path(partition.root) / f"{label}-{method}-{config.cluster.num_machines}-{partition.seed}"


def ensure_store(
    config: Config, say: Callable[[str], None] = lambda line: None, access: DataAccess = DataAccess.PART
) -> tuple[Path, dict[str, Any]]:
    """(path, manifest) of the store of these settings, with the derived data that `access` needs; built if missing.

    A lock keeps concurrent processes from building the same store twice.
    """
    path = store_path(config)
    if not (path / "manifest.json").exists():
        with _lock(path.parent):
            if not (path / "manifest.json").exists():
                if path.exists():
                    raise UserError(
                        f"{path}: has no manifest.json; copy it and global/ to the server's host, or remove the folder"
                    )
                build_store(config, path, say)
    manifest = read_manifest(path)
    if manifest["dataset"] != _dataset_identity(config.dataset):
        raise UserError(f"{path}: built from other dataset settings; remove it or set partition.root to another folder")
    for setting, digest in content_hashes(config.dataset).items():
        if (manifest.get("content") or {}).get(setting) != digest:
            file = f"dataset.{setting}={getattr(config.dataset, setting)}"
            advice = "remove that folder, or give the new graph a dataset.name of its own"
            raise UserError(f"{file}: has changed since {path} was built from it; {advice}")
    _require_same_parts(config.partition.file, path, manifest)
    if lacks_derived(config, path, access):
        with _lock(path.parent):
            if lacks_derived(config, path, access):
                build_derived(config, path, access, say)
    return path, manifest


def _require_same_parts(file: str | None, path: Path, manifest: dict[str, Any]) -> None:
    """Raises UserError where partition.file is here, and not what the store was built from."""
    recorded = manifest.get("partition")
    digest = recorded.get("file_sha256") if isinstance(recorded, dict) else None
    if file and Path(file).is_file() and file_sha256(Path(file)) != digest:
        raise UserError(f"partition.file={file}: has changed since {path} was built from it; remove that folder")


def build_store(config: Config, path: Path, say: Callable[[str], None]) -> None:
    """Loads the dataset, partitions it and writes the store; the folder appears at `path` when it is complete."""
    P = config.cluster.num_machines
    say(f"loading dataset {config.dataset.name}")
    content = content_hashes(config.dataset)
    with staged_folder(path) as stage:
        (stage / "global").mkdir()
        memory = memory_for_loading(getattr(config.dataset, "memory", None))
        graph = load_dataset(config.dataset, Workspace(stage / "global", memory, say))
        graph = with_features_of_type(graph, config.partition, stage / "global")
        if graph.num_nodes < P:
            raise UserError(f"cluster.num_machines={P}: more machines than the graph's {graph.num_nodes} nodes")
        config = replace(config, partition=settle_method(config.partition, len(graph.indices), say))
        partitioner = describe_partitioner(config.partition)
        store_id = _store_id(config, content, partitioner)
        say(f"writing the whole graph to {path}")
        write_shard(stage / "global", graph, store_id)
        graph = read_shard(stage / "global").graph  # memory-mapped from here on: METIS needs the memory
        size = f"{graph.num_nodes:,} nodes and {graph.num_edges:,} edges"
        say(f"cutting {size} into {P} parts ({config.partition.method})")
        tables = config.dataset if isinstance(config.dataset, FilesConfig) else None
        assignment = assign_parts(graph, P, config.partition, stage, tables)
        described, assignment = _keep_parts(stage / "global", assignment, config.partition, store_id, say)
        graph, shards = read_shard(stage / "global").graph, {"global": described}
        nodes_of_parts = [np.flatnonzero(assignment == p) for p in range(P)]
        _require_trainable(graph, nodes_of_parts, config)
        say("counting cut edges")
        cut_edges = cut_edge_counts(graph, assignment, P)
        say(f"writing {P} parts")
        parts = []
        for p, nodes in enumerate(nodes_of_parts):
            part = induced_subgraph(graph, nodes, lazy=True)
            shards[f"part{p}"] = write_shard(stage / f"part{p}", part, store_id, nodes=nodes)
            parts.append(_describe_part(part, int(cut_edges[p]), shards[f"part{p}"]))
        entries = {"cut_edges": int(cut_edges.sum()) // 2, "label_counts": graph.label_counts().tolist()}
        manifest = _describe_store(config, graph, store_id, content) | entries | {"parts": parts, "shards": shards}
        versions = {"llcg_dist": __version__, "numpy": np.__version__}
        write_json(stage / "manifest.json", manifest | {"partition": partitioner, "versions": versions})


def _keep_parts(
    folder: Path, assignment: Array, config: PartitionConfig, store_id: str, say: Callable[[str], None]
) -> tuple[dict[str, Any], Array]:
    """Adds the part of every node to the whole graph, and brings that into partition.order; (content of its graph.json,
    the part of every node)."""
    if config.order == NodeOrder.given:
        return extend_shard(folder, assignment=assignment), assignment
    say("bringing the whole graph into the order of its parts")
    return order_by_parts(folder, assignment, store_id)


def describe_partitioner(config: PartitionConfig) -> dict[str, Any]:
    """How parts were made, for the manifest: settings, and whose METIS it was."""
    library = STREAM_METIS if config.method == PartitionMethod.stream else None
    if config.method in (PartitionMethod.metis, PartitionMethod.clusters):
        library = choose_metis(config.backend)
    file = {"file_sha256": file_sha256(Path(config.file))} if config.file else {}
    metis = {"metis": library.version} if library else {}
    options = {name: getattr(config, name) for name in sorted(_used_options(config))}
    return {"method": config.method, "balance": sorted(config.balances)} | metis | file | options


def _used_options(section: PartitionConfig | DatasetConfig) -> set[str]:
    """Of _STORE_OPTIONS those that are not the default."""
    options = (field for field in fields(section) if field.name in _STORE_OPTIONS)
    return {option.name for option in options if getattr(section, option.name) != option.default}


def _ignored(section: PartitionConfig | DatasetConfig) -> set[str]:
    """Settings that a store is not told apart by."""
    return _NOT_OF_THE_GRAPH | (_STORE_OPTIONS - _used_options(section))


def _store_id(config: Config, content: dict[str, str], partitioner: dict[str, Any]) -> str:
    """Identifies the store by its settings, by whose METIS it was, and by the content of the user's files."""
    settings = [fingerprint(section, ignore=_ignored(section)) for section in (config.dataset, config.partition)]
    settings.append(hashlib.sha256(json.dumps(partitioner).encode()).hexdigest()[:8])
    return "".join([*settings, f"{config.cluster.num_machines:04d}", *(digest[:8] for digest in content.values())])


def _describe_store(config: Config, graph: Graph, store_id: str, content: dict[str, str]) -> dict[str, Any]:
    """The entries of manifest.json that follow from the settings and the full graph."""
    return {
        "schema_version": SCHEMA_VERSION,
        "store_id": store_id,
        "dataset": _dataset_identity(config.dataset),
        "content": content,
        "partitioner": config.partition.method,
        "seed": config.partition.seed,
        "num_parts": config.cluster.num_machines,
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "num_features": graph.num_features,
        "num_classes": graph.num_classes,
        "task": graph.task,
        "metric": graph.metric,
    }


def _require_trainable(graph: Graph, nodes_of_parts: list[Array], config: Config) -> None:
    """Raises UserError for a part without a training node."""
    for p, nodes in enumerate(nodes_of_parts):
        if not (graph.split[nodes] == TRAIN).any():
            size = f"part {p} ({len(nodes)} nodes)"
            advice = "use fewer machines (cluster.num_machines), another partition.seed, or partition=random"
            raise UserError(f"partition={config.partition.method}: no training node in {size}; {advice}")


def _describe_part(part: Graph, cut_edges: int, shard: dict[str, Any]) -> dict[str, Any]:
    """The entry of a part in the manifest."""
    return {
        "nodes": part.num_nodes,
        "edges": part.num_edges,
        "cut_edges": cut_edges,
        "train_nodes": len(part.nodes_in(TRAIN)),
        "label_counts": part.label_counts().tolist(),
        "bytes": sum(entry["bytes"] for entry in shard["arrays"].values()),
    }


def _dataset_identity(config: DatasetConfig) -> dict[str, Any]:
    """The settings that determine the graph, as they read back from the manifest's JSON."""
    items = {key: value for key, value in flat_items(config).items() if key not in _ignored(config)}
    return json.loads(json.dumps(items))


@contextlib.contextmanager
def _lock(root: Path) -> Iterator[None]:
    """Holds an exclusive lock on a partition root. The folder itself is locked, so that no lock file is left behind."""
    make_folder(root, "partition.root")
    folder = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
        with contextlib.suppress(OSError):
            root.rmdir()  # removes the folder only if it is empty, because nothing was built
