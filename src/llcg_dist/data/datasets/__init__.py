"""One file per source; each turns its settings into a validated Graph."""

from collections.abc import Callable
from typing import Any

from llcg_dist.config import DatasetConfig
from llcg_dist.data.datasets import synthetic
from llcg_dist.data.graph import Graph

_LOADERS: dict[str, Callable[[Any], Graph]] = {"synthetic": synthetic.generate}


def load_dataset(config: DatasetConfig) -> Graph:
    return _LOADERS[config.name](config).validate(f"dataset={config.name}")
