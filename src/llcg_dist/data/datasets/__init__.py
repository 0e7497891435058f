"""Loaders of datasets, one file per kind of source: settings of the group `dataset` -> validated Graph."""

import logging
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from llcg_dist.config.dataset import BoundedConfig, DatasetConfig
from llcg_dist.data.graph import UNUSED, Graph
from llcg_dist.data.rows import slices
from llcg_dist.data.subset import sample_nodes
from llcg_dist.data.workspace import Workspace

log = logging.getLogger(__name__)

_OWN_SOURCES = {"files": "files", "pyg": "saved_data", "own": "own", "memory": "memory"}
"""{source of users' own graphs: module of this package}."""

_NODES_AT_ONCE = 1 << 16


def load_dataset(config: DatasetConfig, workspace: Workspace | None = None) -> Graph:
    """Loads or generates the graph, takes the sample that dataset.subset asks for, and validates the result.

    Sources of graphs that may be larger than memory put them together in the workspace (a temporary one by default) and
    return arrays that are mapped from its files.
    """
    load = _loader(config.source)
    graph = load(config, workspace) if isinstance(config, BoundedConfig) else load(config)
    if config.subset is not None:
        graph = sample_nodes(graph, config.subset, config.seed)
    graph = graph.validate(f"dataset={config.source}")
    if config.source in _OWN_SOURCES:
        _warn_of_one_hot_labels(graph, config.source)
    return graph


def load_to_predict(config: DatasetConfig, trained: Graph) -> Graph:
    """A graph to predict on with a model of the graph `trained`: a user's own needs neither labels nor a split."""
    from llcg_dist.data.datasets.objects import without_labels

    load: Callable[[Any, Graph], Graph] | None = getattr(_own_source(config.source), "load_to_predict", None)
    return load(config, trained) if load and config.subset is None else without_labels(load_dataset(config))


def _warn_of_one_hot_labels(graph: Graph, source: str) -> None:
    """Classes written as 0/1 columns train as several labels a node: not wrong, and hardly what is meant."""
    if graph.task == "multilabel" and all(
        (graph.labels[rows].sum(axis=1) == 1)[graph.split[rows] != UNUSED].all()
        for rows in slices(graph.num_nodes, _NODES_AT_ONCE)
    ):
        log.warning(
            "dataset=%s: every node has exactly one of %d labels, each trained as a yes or no of its own; "
            "if they are classes, give one column with the class (argmax)",
            source,
            graph.num_classes,
        )


def content_hashes(config: DatasetConfig) -> dict[str, str]:
    """{setting: sha256} of what a user's own graph is read from, where it is here; empty for other sources.

    Such graphs cannot be told apart by their settings alone: the content of a file may change under the same name.
    """
    hashes: Callable[[Any], dict[str, str]] | None = getattr(_own_source(config.source), "content_hashes", None)
    return hashes(config) if hashes else {}


def _own_source(source: str) -> ModuleType | None:
    """The module that reads users' own graphs of this source; imported when called, as are the others below."""
    name = _OWN_SOURCES.get(source)
    return import_module(f"{__package__}.{name}") if name else None


def _loader(source: str) -> Callable[..., Graph]:
    """The load function of a source, imported when called: ranks read the store and need no pandas, PyG or ogb."""
    if own := _own_source(source):
        load: Callable[..., Graph] = own.load
        return load
    from llcg_dist.data.datasets import mag240m, ogbn, pyg, synthetic

    loaders: dict[str, Callable[..., Graph]] = {
        "synthetic": synthetic.generate,
        "mag240m": mag240m.load,
        **dict.fromkeys(pyg.SOURCES, pyg.load),
        **dict.fromkeys(ogbn.SOURCES, ogbn.load),
    }
    return loaders[source]
