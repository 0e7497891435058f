"""Node-property graphs of the Open Graph Benchmark, read by ogb's own loader from dataset.root/ogbn_<name>."""

import contextlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from llcg_dist.config.datasets import PublishedConfig
from llcg_dist.data.csr import undirected_csr
from llcg_dist.data.datasets.published import Statistics, check_statistics, reading, require_files
from llcg_dist.data.datasets.splits import split_of
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array

SOURCES = ("ogbn-arxiv", "ogbn-proteins", "ogbn-products")


def load(config: PublishedConfig) -> Graph:
    dataset, split = _read(config)
    graph, labels = dataset[0]
    num_nodes, edges = graph["num_nodes"], graph["edge_index"]
    features = graph["node_feat"]
    if features is None:
        features = mean_of_edges(edges, graph["edge_feat"], num_nodes)
    multilabel = labels.shape[1] > 1
    num_classes = dataset.num_tasks if multilabel else dataset.num_classes
    check_statistics(config.name, Statistics(num_nodes, edges.shape[1], features.shape[1], num_classes))
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
    """[N, F]: each node's mean over the edges that it is an end of, 0 where there are none.

    What OGB's own example for ogbn-proteins takes as node features.
    """

    def summed(weights: Array | None) -> Array:
        return np.sum([np.bincount(ends, weights, minlength=num_nodes) for ends in edges], axis=0)

    count = np.maximum(summed(None), 1)
    return np.stack([summed(column) / count for column in edge_features.T], axis=1).astype(np.float32)


@contextlib.contextmanager
def ogb_session() -> Iterator[None]:
    """ogb without its side effects: no network, no chatter, and torch.load takes the index arrays that ogb saves.

    As it is imported ogb looks for a newer version of itself, in a thread that holds up the end of the process.
    """
    sys.modules.setdefault("outdated", None)  # type: ignore[arg-type]
    reconstruct = np.empty(0).__reduce__()[0]
    old_name = (reconstruct, "numpy.core.multiarray._reconstruct")  # in files written with NumPy 1
    dtypes = [type(np.dtype(kind)) for kind in ("int32", "int64")]
    allowed: list[Any] = [reconstruct, old_name, np.ndarray, np.dtype, *dtypes]
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        torch.serialization.safe_globals(allowed),
    ):
        yield


def _read(config: PublishedConfig) -> tuple[Any, dict[str, Array]]:
    """ogb's dataset with edges as they are listed, and its split."""
    with ogb_session():
        import pandas as pd
        from ogb.io.read_graph_raw import read_csv_graph_raw
        from ogb.nodeproppred import NodePropPredDataset

        class WithoutCache(NodePropPredDataset):
            """ogb caches what it read in a pickle that torch.load refuses, and adds inverse edges we add anyway."""

            def pre_process(self) -> None:
                raw = Path(self.root) / "raw"
                self.graph = read_csv_graph_raw(str(raw))[0]
                self.labels = pd.read_csv(raw / "node-label.csv.gz", header=None).to_numpy()

        folder = Path(config.root) / config.name.replace("-", "_")
        _require(config.name, folder)
        with reading(str(folder), "ogb"):
            dataset = WithoutCache(config.name, root=config.root)
            return dataset, dataset.get_idx_split()


def _require(name: str, folder: Path) -> None:
    """All that ogb would otherwise download, or ask for on stdin."""
    import ogb.nodeproppred
    import pandas as pd

    master = Path(ogb.nodeproppred.__file__).parent / "master.csv"
    meta = pd.read_csv(master, index_col=0, keep_default_na=False)[name]
    features = "node-feat" if meta["has_node_attr"] == "True" else "edge-feat"
    raw = ("edge", "num-node-list", "num-edge-list", features, "node-label")
    wanted = [folder / f"RELEASE_v{meta['version']}.txt"]
    wanted += [folder / "raw" / f"{file}.csv.gz" for file in raw]
    wanted += [folder / "split" / meta["split"] / f"{part}.csv.gz" for part in ("train", "valid", "test")]
    advice = f"unpack {meta['url']} and rename the folder {meta['download_name']} in it to {folder}"
    require_files(name, wanted, advice)
