"""Cuts a graph into P parts with DGL's METIS or at random, and writes the store that ranks load from."""

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from llcg_dist import __version__
from llcg_dist.config.compare import fingerprint, flat_items
from llcg_dist.config.datasets import DatasetConfig
from llcg_dist.config.schema import Config, PartitionConfig
from llcg_dist.data.datasets import content_hashes, load_dataset
from llcg_dist.data.extras import Reads, ensure_extras
from llcg_dist.data.graph import TRAIN, Array, Graph, cut_edge_counts, induced_subgraph, reordered_topology
from llcg_dist.data.store import (
    SCHEMA_VERSION,
    extend_shard,
    make_folder,
    read_manifest,
    read_shard,
    save_array,
    staged_folder,
    write_json,
    write_shard,
)
from llcg_dist.errors import UserError


def store_path(config: Config) -> Path:
    """<partition.root>/<dataset>-<partitioner>-<P>-<seed>, from the settings alone: machines need no other file.

    <dataset> is the source and, where it has several graphs, the name (planetoid_Cora); settings that are not the
    defaults add a hash of them. Where the graph's own files lie (dataset.root) makes no difference.
    """
    dataset = config.dataset
    label = dataset.name if dataset.name == dataset.source else f"{dataset.source}_{dataset.name}"
    defaults = type(dataset)(source=dataset.source, name=dataset.name)
    if _dataset_identity(dataset) != _dataset_identity(defaults):
        label += f"_{fingerprint(dataset, ignore={'root'})[:8]}"
    partition = config.partition
    return Path(partition.root) / f"{label}-{partition.method}-{config.cluster.num_machines}-{partition.seed}"


def ensure_store(
    config: Config, say: Callable[[str], None] = lambda line: None, reads: Reads = Reads.PART
) -> tuple[Path, dict[str, Any]]:
    """The store of these settings, with what `reads` needs, and its manifest: found, or built now. Builders of the same
    store take turns."""
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
        if manifest.get("content", {}).get(setting) != digest:
            file = f"dataset.{setting}={getattr(config.dataset, setting)}"
            advice = "remove that folder, or give the new graph a dataset.name of its own"
            raise UserError(f"{file}: has changed since {path} was built from it; {advice}")
    if reads is not Reads.PART:
        with _lock(path.parent):
            ensure_extras(config, path, reads, say)
    return path, manifest


def build_store(config: Config, path: Path, say: Callable[[str], None]) -> None:
    P = config.cluster.num_machines
    say(f"loading dataset {config.dataset.name}")
    content = content_hashes(config.dataset)
    graph = load_dataset(config.dataset)
    if graph.num_nodes < P:
        raise UserError(f"cluster.num_machines={P}: more machines than the graph's {graph.num_nodes} nodes")
    settings = (fingerprint(part, ignore={"root"}) for part in (config.dataset, config.partition))
    store_id = "".join([*settings, f"{P:04d}", *(digest[:8] for digest in content.values())])
    with staged_folder(path) as stage:
        say(f"writing the whole graph to {path}")
        write_shard(stage / "global", graph, store_id)
        graph = read_shard(stage / "global").graph  # mapped from here on: METIS needs the memory
        size = f"{graph.num_nodes:,} nodes and {graph.num_edges:,} edges"
        say(f"cutting {size} into {P} parts ({config.partition.method})")
        assignment = assign_parts(graph, P, config.partition, scratch=stage)
        members = [np.flatnonzero(assignment == p) for p in range(P)]
        _require_trainable(graph, members, config)
        shards = {"global": extend_shard(stage / "global", assignment=assignment)}
        say("counting cut edges")
        cut = cut_edge_counts(graph, assignment, P)
        say(f"writing {P} parts")
        parts = []
        for p, nodes in enumerate(members):
            part = induced_subgraph(graph, nodes, lazy=True)
            shards[f"part{p}"] = write_shard(stage / f"part{p}", part, store_id, nodes=nodes)
            parts.append(_describe_part(part, int(cut[p]), shards[f"part{p}"]))
        manifest = {
            "schema_version": SCHEMA_VERSION,
            "store_id": store_id,
            "dataset": _dataset_identity(config.dataset),
            "content": content,
            "partitioner": config.partition.method,
            "seed": config.partition.seed,
            "num_parts": P,
            "num_nodes": graph.num_nodes,
            "num_edges": graph.num_edges,
            "num_features": graph.num_features,
            "num_classes": graph.num_classes,
            "task": graph.task,
            "metric": graph.metric,
            "cut_edges": int(cut.sum()) // 2,
            "label_counts": graph.label_counts().tolist(),
            "parts": parts,
            "shards": shards,
            "versions": {"llcg_dist": __version__, "numpy": np.__version__},
        }
        write_json(stage / "manifest.json", manifest)


def assign_parts(graph: Graph, num_parts: int, config: PartitionConfig, scratch: Path | None = None) -> Array:
    """[N] int32: the part of every node; the same bits for the same graph, method and seed.

    METIS needs room on a disk for about four times the topology: in `scratch`, or where temporary files go.
    """
    if num_parts == 1:  # METIS dies of SIGFPE on one part
        return np.zeros(graph.num_nodes, np.int32)
    if config.method == "random":
        rng = np.random.default_rng(np.random.SeedSequence(config.seed))
        return rng.permutation(np.arange(graph.num_nodes) % num_parts).astype(np.int32)
    with tempfile.TemporaryDirectory(prefix="metis-", dir=scratch) as folder:
        return _metis(graph, num_parts, config.seed, Path(folder))


def _metis(graph: Graph, num_parts: int, seed: int, folder: Path) -> Array:
    """METIS reseeds itself at every call, so the seed is the order in which it meets the nodes; 0 keeps it as it is."""
    order = np.arange(graph.num_nodes)
    indptr, indices = graph.indptr, graph.indices
    if seed != 0:
        order = np.random.default_rng(np.random.SeedSequence(seed)).permutation(graph.num_nodes)
        indptr, indices = reordered_topology(graph, order)
    for name, array in (("indptr", indptr), ("indices", indices)):
        save_array(folder / f"{name}.npy", array, np.int64)  # DGL's METIS knows no other
    del indptr, indices
    assignment = np.empty(graph.num_nodes, np.int32)
    assignment[order] = _metis_in_its_own_process(folder, num_parts)
    return assignment


def _metis_in_its_own_process(folder: Path, num_parts: int) -> Array:
    """METIS reads stack and heap before it writes them, so its parts would depend on what ran before in the process.

    A process of its own, in which malloc hands out zeros and keeps no old blocks (glibc's perturb and tcache_count) and
    METIS runs on a new thread's untouched stack, gives the same parts every time. And its memory goes with it.
    """
    clean = "glibc.malloc.perturb=255:glibc.malloc.tcache_count=0"
    command = [sys.executable, "-m", __name__, str(folder), str(num_parts)]
    environment = os.environ | {"GLIBC_TUNABLES": clean, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UserError(f"partition=metis: METIS failed ({done.returncode}: {reason}); try partition=random")
    found: Array = np.load(folder / "assignment.npy", allow_pickle=False)
    return found


def _metis_process(folder: str, num_parts: int) -> None:
    """What that process runs.

    Not dgl.metis_partition_assignment: it first makes the graph symmetric, which ours is, and spends most of its memory
    on that. What it calls then takes the topology as it is mapped.
    """
    import dgl
    import torch

    os.chdir(folder)  # METIS keeps the graphs that it has coarsened in files of the folder it runs in
    columns = [torch.from_numpy(np.load(f"{name}.npy", mmap_mode="r")) for name in ("indptr", "indices")]
    no_ids = torch.empty(0, dtype=torch.int64)
    topology = dgl.graph(("csc", (*columns, no_ids)), num_nodes=len(columns[0]) - 1)
    no_weights = dgl.backend.to_dgl_nd(torch.empty(0, dtype=torch.int64))

    def cut() -> Array:
        parts = dgl.partition._CAPI_DGLMetisPartition_Hetero(topology._graph, num_parts, no_weights, "k-way", True)
        found: Array = dgl.utils.toindex(parts).tonumpy()
        return found

    # Larger than any stack that glibc would keep and hand out again.
    threading.stack_size(64 << 20)
    with ThreadPoolExecutor(1) as thread:
        np.save("assignment.npy", thread.submit(cut).result().astype(np.int32))


def _require_trainable(graph: Graph, members: list[Array], config: Config) -> None:
    for p, nodes in enumerate(members):
        if not (graph.split[nodes] == TRAIN).any():
            size = f"part {p} ({len(nodes)} nodes)"
            advice = "use fewer machines (cluster.num_machines), another partition.seed, or partition=random"
            raise UserError(f"partition={config.partition.method}: no training node in {size}; {advice}")


def _describe_part(part: Graph, cut_edges: int, shard: dict[str, Any]) -> dict[str, Any]:
    return {
        "nodes": part.num_nodes,
        "edges": part.num_edges,
        "cut_edges": cut_edges,
        "train_nodes": len(part.nodes_in(TRAIN)),
        "label_counts": part.label_counts().tolist(),
        "bytes": sum(entry["bytes"] for entry in shard["arrays"].values()),
    }


def label_skew(part_counts: list[int], all_counts: list[int]) -> float:
    """Total variation distance between a part's label shares and the whole graph's: 0 the same, 1 disjoint."""
    part, whole = np.array(part_counts, float), np.array(all_counts, float)
    return float(np.abs(part / max(part.sum(), 1) - whole / max(whole.sum(), 1)).sum() / 2)


def _dataset_identity(config: DatasetConfig) -> dict[str, Any]:
    items = {key: value for key, value in flat_items(config).items() if key != "root"}
    return json.loads(json.dumps(items))  # as it reads back from the manifest


@contextlib.contextmanager
def _lock(root: Path) -> Iterator[None]:
    """One builder at a time under a root. The lock is on the folder itself, so that it leaves no file behind."""
    make_folder(root, "partition.root")
    folder = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
        with contextlib.suppress(OSError):
            root.rmdir()  # only an empty one goes: nothing was built, nothing is left


if __name__ == "__main__":
    try:
        _metis_process(sys.argv[1], int(sys.argv[2]))
    except Exception as error:  # DGL's messages end in a stack trace
        sys.exit((str(error) or type(error).__name__).splitlines()[0])
