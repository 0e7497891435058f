"""How large a graph is, told without reading it: from a store's manifest, the settings, or the headers of files."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from llcg_dist.config.datasets import SyntheticConfig
from llcg_dist.config.files import FilesConfig
from llcg_dist.config.partition import FeaturesDtype
from llcg_dist.config.schema import Config
from llcg_dist.data.csr import index_dtype

_LABELS_READ = 100_000
"""Labels that are looked at to know how many classes there are."""
_LINES_READ = 1 << 16
"""Bytes of a text file that are looked at to know how long its lines are."""
_CLASSES = 50
"""Classes of a graph whose labels are a table: only reading all of it would tell."""
_FILES = ("edges", "features", "labels", "split", "train_mask", "val_mask", "test_mask")


@dataclass(frozen=True)
class GraphSize:
    """A graph as far as cost goes."""

    nodes: int
    edges: int
    """Undirected. Of a file all its lines, also those that stand twice."""
    features: int
    classes: int
    train_share: float = 0.5
    """Of the nodes."""
    value_bytes: int = 4
    """Of a feature where it is read from."""
    stored_bytes: int = 4
    """Of a feature in the store."""
    file_bytes: int = 0
    """Of the user's own files, which are read twice to know their content."""
    edge_bytes: int = 0
    """Of edges that are mapped while they are read."""
    are_tables: bool = False
    """Whether edges or features are read from tables, and ids looked up."""
    is_written: bool = False
    """Whether features are written while the graph is loaded: generated, or converted."""
    is_drawn: bool = False
    """Whether the graph is generated."""

    @property
    def entries(self) -> int:
        """Of the topology: every edge in both directions."""
        return 2 * self.edges

    @property
    def index_bytes(self) -> int:
        return np.dtype(index_dtype(self.nodes, self.entries)).itemsize

    @property
    def topology_bytes(self) -> int:
        return self.index_bytes * (self.nodes + 1 + self.entries)

    @property
    def degree(self) -> float:
        return self.entries / max(1, self.nodes)

    @property
    def values(self) -> int:
        """Numbers in the features."""
        return self.nodes * self.features

    @property
    def whole_bytes(self) -> int:
        """global/ of a store: topology, features, labels, split and the part of every node."""
        return self.topology_bytes + self.values * self.stored_bytes + self.nodes * (8 + 1 + 4)

    def part_bytes(self, num_parts: int, kept: float) -> int:
        """One of the parts, where the share `kept` of the edges is inside of them: arrays, and its nodes' numbers."""
        entries = self.index_bytes * (self.nodes + self.entries * kept)
        return round((entries + self.values * self.stored_bytes + self.nodes * (8 + 1 + 8)) / num_parts)


def size_of(config: Config, manifest: dict[str, Any] | None = None) -> GraphSize | None:
    """The graph of these settings, or of a store; None where only loading it would tell."""
    if manifest is not None:
        return _of_manifest(manifest)
    dataset = config.dataset
    size: GraphSize | None = None
    if isinstance(dataset, SyntheticConfig):
        edges = round(dataset.nodes * dataset.degree / 2)
        classes = dataset.multilabel or dataset.classes
        drawn = {"is_written": True, "is_drawn": True}
        size = GraphSize(dataset.nodes, edges, dataset.features, classes, dataset.train_fraction, **drawn)
    elif isinstance(dataset, FilesConfig) and dataset.edges and dataset.features and dataset.labels:
        size = _of_files(dataset)
    if size is None or (dataset.subset is not None and dataset.subset < size.nodes):
        return None  # how many edges are left in a sample depends on the graph
    halves = config.partition.features_dtype == FeaturesDtype.float16
    return replace(size, stored_bytes=2 if halves else size.stored_bytes)


def _of_manifest(manifest: dict[str, Any]) -> GraphSize:
    nodes, parts = manifest["num_nodes"], manifest["parts"]
    stored = np.dtype(manifest["shards"]["global"]["arrays"]["features"]["dtype"]).itemsize
    train = sum(part["train_nodes"] for part in parts) / max(1, nodes)
    features, classes = manifest["num_features"], manifest["num_classes"]
    return GraphSize(nodes, manifest["num_edges"], features, classes, train, stored, stored)


def _of_files(dataset: FilesConfig) -> GraphSize | None:
    paths = {name: Path(given) for name in _FILES if (given := getattr(dataset, name))}
    if not all(path.is_file() for path in paths.values()):
        return None
    edges, features = _shape(paths["edges"]), _shape(paths["features"])
    if edges is None or features is None:
        return None
    nodes, width = features.rows, features.columns if features.is_array else features.columns - 1
    value_bytes = features.itemsize if features.itemsize in (2, 4) else 4
    return GraphSize(
        nodes,
        edges.columns if edges.is_array else edges.rows,
        max(1, width),
        _classes(paths["labels"]),
        dataset.train_fraction,
        value_bytes,
        value_bytes,
        file_bytes=sum(path.stat().st_size for path in paths.values()),
        edge_bytes=paths["edges"].stat().st_size if edges.is_array else 0,
        are_tables=not (edges.is_array and features.is_array),
        is_written=not (features.is_array and features.is_float),
    )


@dataclass(frozen=True)
class _Shape:
    rows: int
    columns: int
    itemsize: int = 4
    is_array: bool = False
    is_float: bool = False


def _shape(path: Path) -> _Shape | None:
    """Rows and columns of a file, from its header alone; of text about as many, by the length of its first lines."""
    try:
        if path.suffix == ".npy":
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            rows, columns = array.shape
            return _Shape(rows, columns, array.dtype.itemsize, True, array.dtype in (np.float32, np.float16))
        if path.suffix == ".parquet":
            import pyarrow.parquet

            about = pyarrow.parquet.read_metadata(path)
            return _Shape(about.num_rows, about.num_columns)
        with path.open("rb") as file:
            head = file.read(_LINES_READ)
    except Exception:  # a damaged file raises almost anything; loading will name it
        return None
    lines = head.count(b"\n")
    if path.suffix == ".gz" or lines < 2:
        return None
    header = head.split(b"\n", 1)[0]
    columns = max(len(header.split(separator)) for separator in (b",", b";", b"\t", b" ", b"|"))
    return _Shape(path.stat().st_size * lines // len(head) - 1, columns)


def _classes(path: Path) -> int:
    if path.suffix != ".npy":
        return _CLASSES
    try:
        labels = np.load(path, mmap_mode="r", allow_pickle=False)
        return int(labels.shape[1]) if labels.ndim == 2 else int(np.nanmax(labels[:_LABELS_READ], initial=0)) + 1
    except Exception:  # as above
        return _CLASSES
