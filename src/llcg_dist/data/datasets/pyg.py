"""Graphs read by PyTorch Geometric's dataset classes, from raw files in dataset.root in the layout of those classes."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from llcg_dist.config.dataset import GRAPH_NAMES, check_fractions
from llcg_dist.config.datasets import (
    FractionsConfig,
    HeterophilousConfig,
    PlanetoidConfig,
    PlanetoidSplit,
    PublishedConfig,
)
from llcg_dist.data.datasets.published import (
    Statistics,
    explain_read_errors,
    is_writable,
    published_graph,
    require_files,
)
from llcg_dist.data.datasets.splits import split_by_fractions, split_from_nodes
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array


@dataclass(frozen=True)
class Source:
    """How a source is read and scored."""

    loader: str
    """The class of torch_geometric.datasets."""
    metric: str = "accuracy"
    counts_both_directions: bool = False
    """Whether its published number of edges counts each edge twice."""


SOURCES = {
    "flickr": Source("Flickr", metric="f1_micro", counts_both_directions=True),
    "reddit": Source("Reddit2", metric="f1_micro"),
    "yelp": Source("Yelp", metric="f1_micro", counts_both_directions=True),
    "planetoid": Source("Planetoid"),
    "amazon": Source("Amazon"),
    "coauthor": Source("Coauthor"),
    "heterophilous": Source("HeterophilousGraphDataset"),
}

_BINARY = ("Minesweeper", "Tolokers", "Questions")
"""Graphs with two classes of very different size, for which their authors report ROC-AUC."""


def load(config: PublishedConfig) -> Graph:
    """Reads one graph, with the split of its source or one drawn by fractions."""
    source = SOURCES[config.source]
    _check_split(config)
    data = _read(config, source)
    labels = data.y.numpy()
    num_nodes, edges = len(data.x), data.edge_index.numpy()
    num_classes = labels.shape[1] if labels.ndim == 2 else int(labels.max()) + 1
    num_edges = edges.shape[1] if source.counts_both_directions else edges.shape[1] // 2
    return published_graph(
        config.name,
        Statistics(num_nodes, num_edges, data.x.shape[1], num_classes),
        edges,
        data.x.numpy().astype(np.float32, copy=False),
        labels,
        _split(config, data, num_nodes),
        metric="roc_auc" if config.name in _BINARY else source.metric,
    )


def _check_split(config: PublishedConfig) -> None:
    if isinstance(config, FractionsConfig):
        check_fractions(config)


def _split(config: PublishedConfig, data: Any, num_nodes: int) -> Array:
    """[N] int8: drawn by fractions, or from the masks of the PyG Data object."""
    drawn = (
        config.split == PlanetoidSplit.random
        if isinstance(config, PlanetoidConfig)
        else isinstance(config, FractionsConfig)
    )
    if drawn and isinstance(config, FractionsConfig):
        rng = np.random.default_rng(np.random.SeedSequence(config.seed))
        return split_by_fractions(np.arange(num_nodes), num_nodes, config, rng)
    masks = [mask.numpy() for mask in (data.train_mask, data.val_mask, data.test_mask)]
    if isinstance(config, HeterophilousConfig):
        masks = [mask[:, config.split] for mask in masks]
    train, val, test = masks
    if isinstance(config, PlanetoidConfig) and config.split == PlanetoidSplit.full:
        train = ~(val | test)
    return split_from_nodes(num_nodes, train, val, test)


def _read(config: PublishedConfig, source: Source) -> Any:
    """The Data object of a PyG dataset. processed/ goes beside raw/, or to a temporary folder if that is read-only."""
    import torch_geometric.datasets

    loader: Any = getattr(torch_geometric.datasets, source.loader)
    arguments = [config.root, config.name] if config.source in GRAPH_NAMES else [config.root]
    with tempfile.TemporaryDirectory(prefix="llcg-") as scratch:

        def download(self: Any) -> None:
            raw = [Path(path) for path in self.raw_paths]
            call = f"{source.loader}({', '.join(map(repr, arguments))})"
            fetch = f'python -c "from torch_geometric.datasets import {source.loader}; {call}"'
            require_files(config.source, raw, f"put them there (where there is a network: {fetch})")

        def processed_dir(self: Any) -> str:
            beside = Path(loader.processed_dir.fget(self))
            usable = (beside / "data.pt").exists() or is_writable(Path(self.raw_dir).parent)
            return str(beside) if usable else scratch

        # A subclass of PyG's class that downloads nothing, and chooses where it writes.
        overrides = {"_download": download, "processed_dir": property(processed_dir)}
        offline = type(source.loader, (loader,), overrides)
        with explain_read_errors(f"dataset.root={config.root}", source.loader):
            return offline(*arguments)[0]
