"""Node-property graphs of the Open Graph Benchmark, read by ogb's own loader from dataset.root/ogbn_<name>."""

import contextlib
import io
import pickle
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from llcg_dist.data.datasets.published import Statistics, check_statistics, is_writable, require_files
from llcg_dist.data.datasets.splits import split_of
from llcg_dist.data.graph import Array, Graph, undirected_csr
from llcg_dist.dataset_config import PublishedConfig
from llcg_dist.errors import UserError

SOURCES = ("ogbn-arxiv", "ogbn-proteins", "ogbn-products")


def load(config: PublishedConfig) -> Graph:
    if config.name != config.source:
        raise UserError(f"dataset.name={config.name}: must be {config.source} with dataset={config.source}")
    with ogb_session():
        dataset = _read(config)
        graph, labels = dataset[0]
        split = dataset.get_idx_split()
    num_nodes, edges = graph["num_nodes"], graph["edge_index"]
    features = graph["node_feat"]
    if features is None:
        features = mean_of_edges(edges, graph["edge_feat"], num_nodes)
    multilabel = labels.shape[1] > 1
    num_classes = dataset.num_tasks if multilabel else dataset.num_classes
    has_both_directions = dataset.meta_info["add_inverse_edge"] == "True"
    counted = edges.shape[1] // 2 if has_both_directions else edges.shape[1]
    check_statistics(config.name, Statistics(num_nodes, counted, features.shape[1], num_classes))
    indptr, indices = undirected_csr(edges[0], edges[1], num_nodes)
    return Graph(
        indptr,
        indices,
        features=features.astype(np.float32, copy=False),
        labels=labels.astype(np.float32) if multilabel else labels[:, 0].astype(np.int64),
        split=split_of(num_nodes, split["train"], split["valid"], split["test"]),
        num_classes=num_classes,
        task="multilabel" if multilabel else "multiclass",
        metric={"rocauc": "roc_auc", "acc": "accuracy"}[dataset.eval_metric],
    )


def mean_of_edges(edges: Array, edge_features: Array, num_nodes: int) -> Array:
    """[N, F]: each node's mean over the edges that end in it (edges in both directions), 0 where there are none.

    What OGB's own example for ogbn-proteins takes as node features.
    """
    count = np.maximum(np.bincount(edges[1], minlength=num_nodes), 1)
    columns = [np.bincount(edges[1], weights=column, minlength=num_nodes) / count for column in edge_features.T]
    return np.stack(columns, axis=1).astype(np.float32)


@contextlib.contextmanager
def ogb_session() -> Iterator[None]:
    """ogb without its side effects: no network, no chatter, and torch.load takes the arrays that ogb saved.

    As it is imported ogb looks for a newer version of itself, in a thread that holds up the end of the process.
    """
    sys.modules.setdefault("outdated", None)  # type: ignore[arg-type]
    reconstruct = np.empty(0).__reduce__()[0]
    dtypes = [type(np.dtype(kind)) for kind in ("i2", "i4", "i8", "f2", "f4", "f8", "bool")]
    old_name = (reconstruct, "numpy.core.multiarray._reconstruct")  # in files written with NumPy 1
    allowed: list[Any] = [reconstruct, old_name, np.ndarray, np.dtype, *dtypes]
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        torch.serialization.safe_globals(allowed),
    ):
        yield


def _read(config: PublishedConfig) -> Any:
    from ogb.nodeproppred import NodePropPredDataset

    folder = Path(config.root) / config.name.replace("-", "_")
    _require(config.name, folder)
    try:
        if is_writable(folder):
            (folder / "processed").mkdir(exist_ok=True)  # ogb expects it from the archive
            return NodePropPredDataset(config.name, root=config.root)
        with tempfile.TemporaryDirectory(prefix="llcg-") as scratch:
            _link(folder, Path(scratch) / folder.name)
            dataset = NodePropPredDataset(config.name, root=scratch)
            dataset.root = str(folder)  # its splits are read later
            return dataset
    except (OSError, EOFError, ValueError, KeyError, RuntimeError, zlib.error, pickle.UnpicklingError) as error:
        raise UserError(f"{folder}: ogb cannot read its files ({type(error).__name__}: {error})") from None


def _require(name: str, folder: Path) -> None:
    """All that ogb would otherwise download, or ask for on stdin."""
    import ogb.nodeproppred
    import pandas as pd

    master = Path(ogb.nodeproppred.__file__).parent / "master.csv"
    meta = pd.read_csv(master, index_col=0, keep_default_na=False)[name]
    splits = folder / "split" / meta["split"]
    wanted = [folder / f"RELEASE_v{meta['version']}.txt"]
    if not (splits / "split_dict.pt").exists():
        wanted += [splits / f"{part}.csv.gz" for part in ("train", "valid", "test")]
    if not (folder / "processed" / "data_processed").exists():
        features = "node-feat" if meta["has_node_attr"] == "True" else "edge-feat"
        raw = ["edge", "num-node-list", "num-edge-list", "node-label", features]
        wanted += [folder / "raw" / f"{file}.csv.gz" for file in raw]
        more = meta["additional node files"]
        old_name = folder / "raw" / "species.csv.gz"  # as in the archive of ogbn-proteins; ogb renames it
        if more != "None" and not (more == "node_species" and old_name.exists()):
            wanted.append(folder / "raw" / f"{more}.csv.gz")
    advice = f"unpack {meta['url']} and rename the folder {meta['download_name']} in it to {folder}"
    require_files(name, wanted, advice)


def _link(folder: Path, copy: Path) -> None:
    """A copy made of links, file by file because ogb renames one: its processed/ goes there."""
    for file in folder.rglob("*"):
        target = copy / file.relative_to(folder)
        if file.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(file.resolve())
    (copy / "processed").mkdir(exist_ok=True)
