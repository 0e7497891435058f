"""A graph of 200 nodes in files, whose parts have as many training nodes as a test wants."""

from pathlib import Path

import numpy as np

from llcg_dist.config.partition import PartitionConfig, PartitionMethod
from llcg_dist.data.parts import assign_parts
from tests.helpers.graphs import community_graph

NODES = 200


def two_part_graph(folder: Path, train_per_part: tuple[int, int]) -> list[str]:
    """Writes the files; the settings that cut them at random into two parts with so many training nodes each."""
    graph = community_graph(NODES)
    parts = assign_parts(graph, 2, PartitionConfig(PartitionMethod.random))
    split = np.full(NODES, "test", object)
    for part, count in enumerate(train_per_part):
        nodes = np.flatnonzero(parts == part)
        split[nodes[:count]] = "train"
        split[nodes[count : count + 20]] = "val"
    folder.mkdir(exist_ok=True)
    source = np.repeat(np.arange(NODES), np.diff(graph.indptr))
    np.save(folder / "edges.npy", np.stack([source, graph.indices]))
    np.save(folder / "features.npy", graph.features)
    (folder / "labels.csv").write_text("node,label\n" + "".join(f"{n},{c}\n" for n, c in enumerate(graph.labels)))
    (folder / "split.csv").write_text("node,split\n" + "".join(f"{n},{s}\n" for n, s in enumerate(split)))
    files = {"edges": "edges.npy", "features": "features.npy", "labels": "labels.csv", "split": "split.csv"}
    named = [f"dataset.{key}={folder / file}" for key, file in files.items()]
    return ["dataset=files", *named, f"dataset.name={folder.name}", "partition=random"]
