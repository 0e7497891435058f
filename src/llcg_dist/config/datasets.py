"""Schema of the group `dataset`: one dataclass per source of graphs. The text under each field is its help text."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from omegaconf import MISSING

from llcg_dist.config.section import Section


class PlanetoidSplit(StrEnum):
    public = "public"
    full = "full"
    random = "random"


class Metric(StrEnum):
    accuracy = "accuracy"
    f1_micro = "f1_micro"
    roc_auc = "roc_auc"


@dataclass
class DatasetConfig(Section):
    """Where the graph comes from; each source adds its own settings."""

    section: ClassVar[str] = "dataset"

    source: str = MISSING
    """The choice of the group, which says how the graph is read: dataset=planetoid."""
    name: str = MISSING
    """Which graph of the source, e.g. dataset=planetoid dataset.name=PubMed; with dataset=files, what to call it."""
    seed: int = 0
    """Seed of what the dataset draws (a generated graph, a split); apart from `seed`: seeds sweep over one graph."""
    subset: int | None = None
    """Keep only this many nodes and the edges between them, drawn with dataset.seed: any graph, small."""

    def check(self) -> None:
        super().check()
        self.at_least(0, "seed")
        self.check_name()

    def check_name(self) -> None:
        """The name becomes a part of paths."""
        names = GRAPH_NAMES.get(self.source, (self.source,))
        self.require(self.name in names, "name", f"must be one of {', '.join(names)} with dataset={self.source}")


@dataclass
class SyntheticConfig(DatasetConfig):
    """A generated community graph; see data/datasets/synthetic.py."""

    source: str = "synthetic"
    name: str = "synthetic"
    nodes: int = 10_000
    classes: int = 16
    degree: float = 20.0
    """Mean number of neighbours."""
    homophily: float = 0.5
    """Share of a node's edges that stay inside its class."""
    features: int = 64
    signal: float = 0.15
    """Length of a class's mean per feature, against noise of standard deviation 1."""
    multilabel: int = 0
    """More than 0: so many labels, and a node has several: each stands for a random half of the classes (micro-F1)."""
    train_fraction: float = 0.5
    """Share of the nodes to train on, drawn with dataset.seed where the data has no split of its own."""
    val_fraction: float = 0.25
    """Share of the nodes to choose the best model by; the rest tests it."""


@dataclass
class PublishedConfig(DatasetConfig):
    """A published graph with one split of its own, read from files: flickr, reddit, yelp, ogbn-*, mag240m."""

    root: str = "data"
    """Folder that the standard loader reads (docs/data.md says what goes where)."""


@dataclass
class FractionsConfig(PublishedConfig):
    """A published graph without a split: amazon, coauthor."""

    train_fraction: float = 0.6
    val_fraction: float = 0.2


@dataclass
class PlanetoidConfig(FractionsConfig):
    """Cora, CiteSeer, PubMed."""

    split: PlanetoidSplit = PlanetoidSplit.public
    """Planetoid: public (20 training nodes a class), full (all but val and test), or random (by fractions)."""


@dataclass
class HeterophilousConfig(PublishedConfig):
    """Heterophilous graphs, in which neighbours are mostly of different classes, each with ten splits."""

    split: int = 0
    """Heterophilous: which of the ten splits, 0 to 9."""

    def check(self) -> None:
        super().check()
        self.require(0 <= self.split <= 9, "split", "must be one of the ten splits, 0 to 9")


@dataclass
class FilesConfig(DatasetConfig):
    """The user's own graph; docs/data.md has the formats and an example."""

    source: str = "files"
    name: str = "files"
    edges: str | None = None
    """Files: .csv or .parquet with the columns src and dst, or .npy [2, M] of node numbers."""
    features: str | None = None
    """Files: .csv or .parquet with a column node and a column per feature, or .npy [N, F]."""
    labels: str | None = None
    """Files: .csv or .parquet with the columns node and label, or node and a 0/1 column per label (multi-label)."""
    split: str | None = None
    """Files: .csv or .parquet with the columns node and split (train, val, test); none: drawn by fractions."""
    train_fraction: float = 0.6
    val_fraction: float = 0.2
    metric: Metric | None = None
    """Files: accuracy, f1_micro or roc_auc; default accuracy, for multi-label f1_micro."""

    def check_name(self) -> None:
        rule = "must be made of letters, digits, '_', '-' and '.'"
        self.require(bool(re.fullmatch(r"\w[\w.-]*", self.name)), "name", rule)


DATASETS: dict[str, type[DatasetConfig]] = {
    "synthetic": SyntheticConfig,
    "files": FilesConfig,
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
"""{dataset.source: schema}, one entry per file of conf/dataset/."""

GRAPH_NAMES = {
    "planetoid": ("Cora", "CiteSeer", "PubMed"),
    "amazon": ("Computers", "Photo"),
    "coauthor": ("CS", "Physics"),
    "heterophilous": ("Roman-empire", "Amazon-ratings", "Minesweeper", "Tolokers", "Questions"),
}
"""Values of dataset.name for the sources that have several graphs; any other source has one graph, named like it."""
