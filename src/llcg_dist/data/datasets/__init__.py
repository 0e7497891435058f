"""Loaders of datasets, one file per kind of source: settings of the group `dataset` -> validated Graph."""

from collections.abc import Callable
from typing import Any

from llcg_dist.config.dataset import DatasetConfig
from llcg_dist.config.files import FilesConfig
from llcg_dist.data.graph import Graph
from llcg_dist.data.subset import sample_nodes


def load_dataset(config: DatasetConfig) -> Graph:
    """Loads or generates the graph, takes the sample that dataset.subset asks for, and validates the result."""
    graph = _loader(config.source)(config)
    if config.subset is not None:
        graph = sample_nodes(graph, config.subset, config.seed)
    return graph.validate(f"dataset={config.source}")


def content_hashes(config: DatasetConfig) -> dict[str, str]:
    """{setting: sha256} of the existing files of a user's own graph (dataset=files); empty for other sources.

    Such graphs cannot be told apart by their settings alone: the content of a file may change under the same name.
    """
    if not isinstance(config, FilesConfig):
        return {}
    from llcg_dist.data.datasets import files

    return files.content_hashes(config)


def _loader(source: str) -> Callable[[Any], Graph]:
    """The load function of a source, imported when called: ranks read the store and need no pandas, PyG or ogb."""
    from llcg_dist.data.datasets import files, mag240m, ogbn, pyg, synthetic

    loaders: dict[str, Callable[[Any], Graph]] = {
        "synthetic": synthetic.generate,
        "files": files.load,
        "mag240m": mag240m.load,
        **dict.fromkeys(pyg.SOURCES, pyg.load),
        **dict.fromkeys(ogbn.SOURCES, ogbn.load),
    }
    return loaders[source]
