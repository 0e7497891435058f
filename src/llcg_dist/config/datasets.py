"""The sources of graphs, one dataclass each, and their list. The text under each field is its help text."""

import math
from dataclasses import dataclass
from enum import StrEnum

from llcg_dist.config.dataset import BoundedConfig, DatasetConfig, check_fractions
from llcg_dist.config.files import FilesConfig
from llcg_dist.config.own_data import MemoryConfig, OwnConfig, PygConfig


class PlanetoidSplit(StrEnum):
    public = "public"
    full = "full"
    random = "random"


@dataclass
class SyntheticConfig(BoundedConfig):
    """A generated community graph; see data/datasets/synthetic.py."""

    source: str = "synthetic"
    name: str = "synthetic"
    nodes: int = 10_000
    """Number of nodes."""
    classes: int = 16
    """Number of classes, all of the same size."""
    degree: float = 20.0
    """Mean number of neighbours."""
    homophily: float = 0.5
    """Share of a node's edges that stay inside its class."""
    features: int = 64
    """Number of features per node."""
    signal: float = 0.15
    """Standard deviation of the class means in each feature; the noise around them has standard deviation 1."""
    label_noise: float = 0.0
    """Share of the nodes with a wrong label, chosen at random."""
    multilabel: int = 0
    """If above 0, the number of labels of a multi-label graph; each label covers a random half of the classes (metric:
    micro-F1)."""
    train_fraction: float = 0.5
    """Share of training nodes, drawn with dataset.seed."""
    val_fraction: float = 0.25
    """Share of validation nodes, which select the best model; the rest are test nodes."""

    def check(self) -> None:
        super().check()
        self.require(self.nodes >= 1, "nodes", "must be at least 1")
        self.require(1 <= self.classes <= self.nodes, "classes", "must lie between 1 and dataset.nodes")
        rule = "must not be negative and must be below dataset.nodes"
        self.require(0 <= self.degree < self.nodes, "degree", rule)
        self.require(0 <= self.homophily <= 1, "homophily", "must lie in [0, 1]")
        self.require(self.features >= 1, "features", "must be at least 1")
        self.require(math.isfinite(self.signal), "signal", "must be a number")
        wrong_class = self.classes > 1 or self.label_noise == 0  # with one class there is no other to take
        rule = "must lie in [0, 1), and be 0 with one class"
        self.require(0 <= self.label_noise < 1 and wrong_class, "label_noise", rule)
        self.require(self.multilabel >= 0, "multilabel", "must not be negative")
        check_fractions(self)


@dataclass
class PublishedConfig(DatasetConfig):
    """A published graph with its own split, read from files: flickr, reddit, yelp, ogbn-*, mag240m."""

    root: str = "data"
    """Folder of the files that the standard loader reads (llcg help graph)."""


@dataclass
class FractionsConfig(PublishedConfig):
    """A published graph without a split: amazon, coauthor."""

    train_fraction: float = 0.6
    """Share of training nodes, drawn with dataset.seed if the data has no split."""
    val_fraction: float = 0.2
    """Share of validation nodes, which select the best model; the rest are test nodes."""


@dataclass
class PlanetoidConfig(FractionsConfig):
    """Cora, CiteSeer, PubMed."""

    split: PlanetoidSplit = PlanetoidSplit.public
    """Planetoid: public (20 training nodes per class), full (all but val and test), or random (by fractions)."""


@dataclass
class HeterophilousConfig(PublishedConfig):
    """Heterophilous graphs, in which neighbours are mostly of different classes, each with ten splits."""

    split: int = 0
    """Heterophilous: which of the ten splits, 0 to 9."""

    def check(self) -> None:
        super().check()
        self.require(0 <= self.split <= 9, "split", "must be one of the ten splits, 0 to 9")


DATASETS: dict[str, type[DatasetConfig]] = {
    "synthetic": SyntheticConfig,
    "files": FilesConfig,
    "pyg": PygConfig,
    "own": OwnConfig,
    "memory": MemoryConfig,
    "flickr": PublishedConfig,
    "reddit": PublishedConfig,
    "yelp": PublishedConfig,
    "ogbn-arxiv": PublishedConfig,
    "ogbn-proteins": PublishedConfig,
    "ogbn-products": PublishedConfig,
    "mag240m": PublishedConfig,
    "planetoid": PlanetoidConfig,
    "amazon": FractionsConfig,
    "coauthor": FractionsConfig,
    "heterophilous": HeterophilousConfig,
}
"""{dataset.source: schema}, one entry per file of conf/dataset/, and one for graphs in the memory of llcg_dist.fit."""
