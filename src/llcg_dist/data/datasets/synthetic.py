"""A generated graph with communities (a stochastic block model), on which dropping cut edges costs accuracy.

A node's own features say little about its class (`signal` is small against the noise); its neighbours say more (a share
`homophily` of the edges stays inside the class).
"""

import shutil
from collections.abc import Callable

import numpy as np

from llcg_dist.config.datasets import SyntheticConfig
from llcg_dist.data.array_writer import ArrayWriter
from llcg_dist.data.csr import Topology, index_dtype
from llcg_dist.data.datasets.splits import split_by_fractions
from llcg_dist.data.external_csr import ExternalCsr
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import ENTRIES_PER_CHUNK, Array, slices
from llcg_dist.data.workspace import Workspace, use_workspace

_BYTES_OF_EDGE = 64
"""Memory for each edge that is drawn at a time."""


def generate(config: SyntheticConfig, workspace: Workspace | None = None) -> Graph:
    """Generates the graph; deterministic for the settings, bit by bit. Edges and features are drawn a piece at a time,
    which gives the same numbers as one draw would."""
    config.check()
    rng = np.random.default_rng(np.random.SeedSequence(config.seed))
    classes = rng.permutation(np.arange(config.nodes) % config.classes)
    with use_workspace(workspace, config.memory) as place:
        topology = _topology(config, classes, rng, place)
        features = _features(config, classes, rng, place)
    split = split_by_fractions(np.arange(config.nodes), config.nodes, config, rng)
    if config.label_noise:
        classes = _with_noise(config, classes, rng)
    if not config.multilabel:
        return Graph(topology.indptr, topology.indices, features, classes, split, config.classes)
    labels = _labels_of_classes(config, rng)[classes]
    return Graph(
        topology.indptr, topology.indices, features, labels, split, config.multilabel, "multilabel", "f1_micro"
    )


def _features(config: SyntheticConfig, classes: Array, rng: np.random.Generator, workspace: Workspace) -> Array:
    means = rng.standard_normal((config.classes, config.features), dtype=np.float32) * np.float32(config.signal)
    writer = ArrayWriter(workspace.folder / "features.npy", np.float32, (config.features,))
    rows_at_once = max(1, min(ENTRIES_PER_CHUNK, workspace.memory // 16) // config.features)
    progress = workspace.progress("drawing features", config.nodes, "nodes")
    for rows in slices(config.nodes, rows_at_once):
        drawn = rng.standard_normal((rows.stop - rows.start, config.features), dtype=np.float32)
        drawn += means[classes[rows]]
        writer.append(drawn)
        progress.add(len(drawn))
    return writer.finish()


def _with_noise(config: SyntheticConfig, classes: Array, rng: np.random.Generator) -> Array:
    """A share `label_noise` of the nodes is labelled with a class that is not theirs."""
    wrong = rng.random(config.nodes) < config.label_noise
    return np.where(wrong, (classes + rng.integers(1, config.classes, size=config.nodes)) % config.classes, classes)


def _labels_of_classes(config: SyntheticConfig, rng: np.random.Generator) -> Array:
    """[classes, labels] of 0 and 1: each label belongs to a random half of the classes, rounded up."""
    rank = rng.random((config.classes, config.multilabel)).argsort(axis=0)
    return (rank < (config.classes + 1) // 2).astype(np.float32)


def _topology(config: SyntheticConfig, classes: Array, rng: np.random.Generator, workspace: Workspace) -> Topology:
    """Every edge has a uniform end, src; the other is in its class with probability `homophily`, else in another one.

    All src are drawn first, then whether dst is in the same class, then its class, then dst: what the last draw needs
    of the others is on disk until then.
    """
    num_edges = round(config.nodes * config.degree / 2)
    pieces = list(slices(num_edges, max(1, min(ENTRIES_PER_CHUNK, workspace.memory // _BYTES_OF_EDGE))))
    folder = workspace.folder / "drawn"
    folder.mkdir()

    def draw(name: str, dtype: type[np.generic], values: Callable[[slice], Array]) -> Array:
        writer = ArrayWriter(folder / f"{name}.npy", dtype)
        for piece in pieces:
            writer.append(values(piece))
        return writer.finish()

    def another_class(piece: slice) -> Array:
        own = classes[src[piece]]
        other = (own + rng.integers(1, max(config.classes, 2), size=len(own))) % config.classes
        return np.where(same_class[piece], own, other)

    src = draw("src", index_dtype(config.nodes, 0), lambda piece: rng.integers(config.nodes, size=_length(piece)))
    same_class = draw("same_class", np.bool_, lambda piece: rng.random(_length(piece)) < config.homophily)
    dst_class = draw("dst_class", index_dtype(config.classes, 0), another_class)
    by_class = np.argsort(classes, kind="stable")
    size = np.bincount(classes, minlength=config.classes)
    first = np.cumsum(size) - size
    csr, progress = ExternalCsr(workspace, config.nodes, num_edges), workspace.progress("edges", num_edges, "edges")
    for piece in pieces:
        of_class = dst_class[piece]
        dst = by_class[first[of_class] + (rng.random(len(of_class)) * size[of_class]).astype(np.int64)]
        csr.add(src[piece], dst)
        progress.add(len(dst))
    shutil.rmtree(folder)
    return csr.finish()


def _length(piece: slice) -> int:
    return int(piece.stop - piece.start)
