"""Settings of dataset=files: tables of the user's own graph. The text under each field is its help text."""

from dataclasses import dataclass, field
from typing import ClassVar

from llcg_dist.config.dataset import BoundedConfig, Metric, OwnDataConfig
from llcg_dist.config.section import Section

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
class FilesConfig(OwnDataConfig, BoundedConfig):
    """The user's own graph; `llcg help graph` has the formats and an example."""

    source: str = "files"
    name: str = "files"
    edges: str | None = None
    """Files: a table (.csv, .tsv, .txt, .gz of these, .parquet) with the columns src and dst, or .npy [2, M]."""
    features: str | None = None
    """Files: a table with a column node and a column per feature, or .npy [N, F]."""
    labels: str | None = None
    """Files: a table with the columns node and label, or node and a 0/1 column per label (multi-label); or .npy."""
    split: str | None = None
    """Files: a table with the columns node and split (train, val, test), or .npy; default: a random split."""
    train_mask: str | None = None
    """Files: instead of dataset.split, a mask of the training nodes, .npy [N] of true and false."""
    val_mask: str | None = None
    """Files: a mask of the validation nodes."""
    test_mask: str | None = None
    """Files: a mask of the test nodes."""
    delimiter: str | None = None
    """Files: separator of cells: a character, or comma, semicolon, tab, space (any number of blanks), pipe; default
    tab in .tsv, otherwise comma."""
    encoding: str = "utf-8"
    """Files: text encoding, such as latin-1, cp1252 or utf-16."""
    columns: ColumnsConfig = field(default_factory=ColumnsConfig)
    train_fraction: float = 0.6
    """Share of training nodes, drawn with dataset.seed if the data has no split."""
    val_fraction: float = 0.2
    """Share of validation nodes, which select the best model; the rest are test nodes."""
    metric: Metric | None = None
    """Files: accuracy, f1_micro or roc_auc; default accuracy, for multi-label f1_micro."""

    @property
    def described(self) -> str:
        return f"dataset.features={self.features}"

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


def _is_encoding(name: str) -> bool:
    """Whether Python can decode text with it; it also has codecs that decode no text, such as hex and zip."""
    try:
        b"ab".decode(name)
    except UnicodeError:  # it knows what text looks like
        return True
    except (LookupError, ValueError):
        return False
    return True
