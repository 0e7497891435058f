"""One file per kind of source; each turns its settings into a validated Graph."""

from collections.abc import Callable
from typing import Any

from llcg_dist.config.datasets import DatasetConfig, FilesConfig
from llcg_dist.data.graph import Graph
from llcg_dist.data.subset import sample_nodes


def load_dataset(config: DatasetConfig) -> Graph:
    graph = _loader(config.source)(config)
    if config.subset is not None:
        graph = sample_nodes(graph, config.subset, config.seed)
    return graph.validate(f"dataset={config.source}")


def content_hashes(config: DatasetConfig) -> dict[str, str]:
    """{setting: sha256} of the files that a user's own graph is made of, as far as they are there; else empty.

    Settings alone do not tell such graphs apart: a file may change under its name.
    """
    if not isinstance(config, FilesConfig):
        return {}
    from llcg_dist.data.datasets import files

    return files.content_hashes(config)


def _loader(source: str) -> Callable[[Any], Graph]:
    """Imported here: ranks read the store, and need neither pandas nor the libraries of published graphs."""
    from llcg_dist.data.datasets import files, mag240m, ogbn, pyg, synthetic

    loaders: dict[str, Callable[[Any], Graph]] = {
        "synthetic": synthetic.generate,
        "files": files.load,
        "mag240m": mag240m.load,
        **dict.fromkeys(pyg.SOURCES, pyg.load),
        **dict.fromkeys(ogbn.SOURCES, ogbn.load),
    }
    return loaders[source]
