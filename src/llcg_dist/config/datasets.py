"""Schema of the group `dataset`: one dataclass per source of graphs. The text under each field is its help text."""

import re
from dataclasses import dataclass, field
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
    """Folder that the standard loader reads (`llcg help data` says what goes where)."""


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


DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " ", "pipe": "|"}
"""Words for the characters that separate cells: most of them mean something to a shell or to Hydra."""


@dataclass
class ColumnsConfig(Section):
    """What the columns are called in the tables of the user's own graph."""

    section: ClassVar[str] = "dataset.columns"

    src: str = "src"
    """Files: the column of edges with the id of one end."""
    dst: str = "dst"
    """Files: the column of edges with the id of the other end."""
    node: str = "node"
    """Files: the column of features, labels and split with the node's id."""
    label: str = "label"
    """Files: the column of labels with the class."""
    split: str = "split"
    """Files: the column of split with train, val or test."""
    part: str = "part"
    """Files: the column of partition.file with the number of the node's part."""
    ignore: list[str] = field(default_factory=list)
    """Files: columns of any table that are not read, e.g. [weight,year]."""

    def check(self) -> None:
        super().check()
        self.require(self.src != self.dst, "dst", "must be another column than dataset.columns.src")
        for name in ("label", "split"):
            self.require(getattr(self, name) != self.node, name, "must be another column than dataset.columns.node")
        for name in ("src", "dst", "node", "label", "split"):
            self.require(getattr(self, name) not in self.ignore, name, "must not be in dataset.columns.ignore")


@dataclass
class FilesConfig(DatasetConfig):
    """The user's own graph; `llcg help data` has the formats and an example."""

    source: str = "files"
    name: str = "files"
    edges: str | None = None
    """Files: a table (.csv, .tsv, .txt, .gz of these, .parquet) with the columns src and dst, or .npy [2, M]."""
    features: str | None = None
    """Files: a table with a column node and a column per feature, or .npy [N, F]."""
    labels: str | None = None
    """Files: a table with the columns node and label, or node and a 0/1 column per label (multi-label); or .npy."""
    split: str | None = None
    """Files: a table with the columns node and split (train, val, test), or .npy; none: drawn by fractions."""
    train_mask: str | None = None
    """Files: in place of dataset.split, a mask of the training nodes, .npy [N] of true and false."""
    val_mask: str | None = None
    """Files: a mask of the validation nodes."""
    test_mask: str | None = None
    """Files: a mask of the test nodes."""
    delimiter: str | None = None
    """Files: what separates cells, a character or comma, semicolon, tab, space (any number of blanks), pipe; default
    tab in .tsv, comma elsewhere."""
    encoding: str = "utf-8"
    """Files: the encoding of text, such as latin-1, cp1252 or utf-16."""
    columns: ColumnsConfig = field(default_factory=ColumnsConfig)
    train_fraction: float = 0.6
    val_fraction: float = 0.2
    metric: Metric | None = None
    """Files: accuracy, f1_micro or roc_auc; default accuracy, for multi-label f1_micro."""

    @property
    def masks(self) -> dict[str, str]:
        """{train, val, test: file} of the masks that are given."""
        given = {"train": self.train_mask, "val": self.val_mask, "test": self.test_mask}
        return {name: path for name, path in given.items() if path is not None}

    def check(self) -> None:
        super().check()
        self.columns.check()
        separates = self.delimiter is None or self.delimiter in DELIMITERS or len(self.delimiter) == 1
        self.require(separates, "delimiter", f"must be one character, or one of {', '.join(DELIMITERS)}")
        self.require(_is_encoding(self.encoding), "encoding", "unknown; use a name such as utf-8, latin-1 or cp1252")
        for name in self.masks:
            rule = "has no effect beside dataset.split; give one of the two"
            self.require(self.split is None, f"{name}_mask", rule)
            self.require(self.train_mask is not None, f"{name}_mask", "needs dataset.train_mask beside it")

    def check_name(self) -> None:
        rule = "must be made of letters, digits, '_', '-' and '.'"
        self.require(bool(re.fullmatch(r"\w[\w.-]*", self.name)), "name", rule)


def _is_encoding(name: str) -> bool:
    """Whether Python can decode text with it; it also has codecs that decode no text, such as hex and zip."""
    try:
        b"ab".decode(name)
    except UnicodeError:  # it knows what text looks like
        return True
    except (LookupError, ValueError):
        return False
    return True


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
