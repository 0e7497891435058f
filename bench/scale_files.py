"""A community graph of any size as the files that a user would have: edges, features and labels as .npy."""

from pathlib import Path

import numpy as np

from llcg_dist.data.array_writer import ArrayWriter
from llcg_dist.data.atomic_files import staged_folder
from llcg_dist.data.csr import index_dtype
from llcg_dist.data.rows import Array, slices

CLASSES, FEATURES, HOMOPHILY, SIGNAL = 47, 100, 0.8, 0.15
_AT_ONCE = 1 << 21


def write_files(folder: Path, num_nodes: int, num_edges: int) -> None:
    """edges.npy [2, M], features.npy [N, 100] float32 and labels.npy [N]; nothing where they are there already."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(np.random.SeedSequence(num_nodes))
    member = rng.permutation(num_nodes).astype(index_dtype(num_nodes, 0))  # of class c: numbers c, c + 47, c + 94, …
    classes = np.empty(num_nodes, np.int64)
    classes[member] = np.arange(num_nodes) % CLASSES
    with staged_folder(folder) as stage:
        np.save(stage / "labels.npy", classes)
        _write_edges(stage / "edges.npy", member, classes, num_edges, rng)
        _write_features(stage / "features.npy", classes, rng)


def file_settings(folder: Path) -> list[str]:
    """The settings that read them."""
    return ["dataset=files", *(f"dataset.{name}={folder}/{name}.npy" for name in ("edges", "features", "labels"))]


def _write_edges(path: Path, member: Array, classes: Array, num_edges: int, rng: np.random.Generator) -> None:
    num_nodes = len(member)
    edges = np.lib.format.open_memmap(path, "w+", member.dtype, (2, num_edges))
    for piece in slices(num_edges, _AT_ONCE):
        src = rng.integers(num_nodes, size=piece.stop - piece.start)
        own = classes[src]
        other = (own + rng.integers(1, CLASSES, size=len(src))) % CLASSES
        class_ = np.where(rng.random(len(src)) < HOMOPHILY, own, other)
        of_class = (num_nodes - 1 - class_) // CLASSES + 1
        edges[0, piece], edges[1, piece] = src, member[class_ + CLASSES * rng.integers(of_class)]
    edges.flush()


def _write_features(path: Path, classes: Array, rng: np.random.Generator) -> None:
    means = rng.standard_normal((CLASSES, FEATURES), dtype=np.float32) * np.float32(SIGNAL)
    writer = ArrayWriter(path, np.float32, (FEATURES,))
    for rows in slices(len(classes), _AT_ONCE // FEATURES):
        drawn = rng.standard_normal((rows.stop - rows.start, FEATURES), dtype=np.float32)
        writer.append(drawn + means[classes[rows]])
    writer.finish()
