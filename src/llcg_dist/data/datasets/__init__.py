"""One file per kind of source; each turns its settings into a validated Graph."""

from collections.abc import Callable
from typing import Any

from llcg_dist.data.datasets import files, mag240m, ogbn, pyg, synthetic
from llcg_dist.data.graph import Graph
from llcg_dist.data.sample import sample_nodes
from llcg_dist.dataset_config import DatasetConfig

_LOADERS: dict[str, Callable[[Any], Graph]] = {
    "synthetic": synthetic.generate,
    "files": files.load,
    "mag240m": mag240m.load,
    **dict.fromkeys(pyg.SOURCES, pyg.load),
    **dict.fromkeys(ogbn.SOURCES, ogbn.load),
}


def load_dataset(config: DatasetConfig) -> Graph:
    graph = _LOADERS[config.source](config)
    if config.subset is not None:
        graph = sample_nodes(graph, config.subset, config.seed)
    return graph.validate(f"dataset={config.source}")


def content_hashes(config: DatasetConfig) -> dict[str, str]:
    """{setting: sha256} of the files that a user's own graph is made of, as far as they are there; else empty.

    Settings alone do not tell such graphs apart: a file may change under its name.
    """
    return files.content_hashes(config) if isinstance(config, files.FilesConfig) else {}
