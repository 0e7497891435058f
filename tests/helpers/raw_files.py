"""Small raw files in the formats of the standard loaders, and the graph that must come out of them."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array

from llcg_dist.config.compose import load_config
from llcg_dist.data.datasets import load_dataset
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array

Edge = tuple[int, int]
NODES = 10
EDGES: list[Edge] = [(i, (i + 1) % NODES) for i in range(NODES)] + [(0, 5), (2, 7)]
SPLIT = {"train": [0, 1, 2, 3, 4], "val": [5, 6], "test": [7, 8]}
"""Node 9 is in no split."""


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tripwire: no loader may go to the network or ask on stdin."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a loader left the machine")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    monkeypatch.setattr("builtins.input", refuse)


def features(width: int = 3, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((NODES, width)).astype(np.float32)


def several_labels(width: int) -> Array:
    return np.random.default_rng(1).integers(0, 2, (NODES, width))


def loaded(root: Path, *overrides: str) -> Graph:
    return load_dataset(load_config([*overrides, f"dataset.root={root}"]).dataset)


def edges_of(graph: Graph) -> set[Edge]:
    rows = zip(graph.indptr[:-1], graph.indptr[1:], strict=True)
    return {(node, int(other)) for node, (a, b) in enumerate(rows) for other in graph.indices[a:b] if node < other}


def undirected(edges: list[Edge]) -> set[Edge]:
    return {(min(edge), max(edge)) for edge in edges if edge[0] != edge[1]}


def write_graphsaint(root: Path, labels: list[Any]) -> None:
    """flickr, reddit, yelp: PyG reads four files as GraphSAINT published them."""
    raw = root / "raw"
    raw.mkdir(parents=True)
    both = EDGES + [(b, a) for a, b in EDGES]
    adjacency = csr_array((np.ones(len(both)), tuple(np.array(both).T)), (NODES, NODES))
    parts = {"data": adjacency.data, "indices": adjacency.indices, "indptr": adjacency.indptr}
    np.savez(raw / "adj_full.npz", **parts, shape=np.array(adjacency.shape))
    np.save(raw / "feats.npy", features().astype(np.float64))
    (raw / "class_map.json").write_text(json.dumps({str(node): label for node, label in enumerate(labels)}))
    (raw / "role.json").write_text(json.dumps({"tr": SPLIT["train"], "va": SPLIT["val"], "te": SPLIT["test"]}))


def write_gnn_benchmark(path: Path) -> None:
    """amazon, coauthor: one .npz with two sparse matrices."""
    path.parent.mkdir(parents=True)
    matrices = {
        "attr": csr_array((features() > 0).astype(np.float32)),
        "adj": csr_array((np.ones(len(EDGES)), tuple(np.array(EDGES).T)), (NODES, NODES)),
    }
    content: dict[str, Any] = {"labels": np.arange(NODES) % 3}
    for name, matrix in matrices.items():
        content |= {f"{name}_data": matrix.data, f"{name}_indices": matrix.indices, f"{name}_indptr": matrix.indptr}
        content[f"{name}_shape"] = np.array(matrix.shape)
    np.savez(path, **content)


def write_ogbn(root: Path, name: str, split: str, **raw: Array) -> Path:
    """OGB's own layout: headerless csv.gz in raw/ and split/."""
    folder = root / name
    content = {"edge": np.array(EDGES), "num-node-list": np.array([[NODES]]), "num-edge-list": np.array([[len(EDGES)]])}
    for file, array in (content | raw).items():
        write_csv_gz(folder / "raw" / f"{file.replace('_feat', '-feat').replace('node_label', 'node-label')}", array)
    for part, file in (("train", "train"), ("val", "valid"), ("test", "test")):
        write_csv_gz(folder / "split" / split / file, np.array(SPLIT[part])[:, None])
    (folder / "RELEASE_v1.txt").touch()
    return folder


def write_csv_gz(path: Path, array: Array) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(array).to_csv(f"{path}.csv.gz", header=False, index=False, compression="gzip")


def write_mag240m(root: Path, edges: Array, labels: Array, paper_features: Array | None = None) -> Path:
    """ogb.lsc's layout, with the papers' part of it only. Features that are None are for the caller to write."""
    folder = root / "mag240m_kddcup2021"
    (folder / "processed" / "paper").mkdir(parents=True)
    (folder / "processed" / "paper___cites___paper").mkdir()
    (folder / "RELEASE_v1.txt").touch()
    torch.save({"paper": len(labels), "author": 1, "institution": 1, "num_classes": 3}, folder / "meta.pt")
    split = {"train": SPLIT["train"], "valid": SPLIT["val"], "test": SPLIT["test"]}
    torch.save({part: np.array(nodes) for part, nodes in split.items()}, folder / "split_dict.pt")
    np.save(folder / "processed" / "paper___cites___paper" / "edge_index.npy", edges)
    np.save(folder / "processed" / "paper" / "node_label.npy", labels)
    if paper_features is not None:
        np.save(folder / "processed" / "paper" / "node_feat.npy", paper_features)
    return folder


def real_data(folder: str, into: Path) -> Path:
    """A copy of LLCG_TEST_DATA/pyg/<folder>, because PyG writes beside the raw files."""
    place = os.environ.get("LLCG_TEST_DATA")
    if not place:
        pytest.skip("LLCG_TEST_DATA is not set: no real graphs here")
    target = into / folder
    for file in (Path(place) / "pyg" / folder).glob("*/raw/*"):
        copy = target / file.relative_to(Path(place) / "pyg" / folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return target
