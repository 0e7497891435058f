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
from llcg_dist.data.datasets.published import Statistics, explain_read_errors, published_graph, require_files
from llcg_dist.data.datasets.splits import split_from_nodes
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array

SOURCES = ("ogbn-arxiv", "ogbn-proteins", "ogbn-products")


def load(config: PublishedConfig) -> Graph:
    """Reads the graph from the raw files; ogbn-proteins gets the mean of its edge features as node features."""
    dataset, split = _read(config)
    graph, labels = dataset[0]
    num_nodes, edges = graph["num_nodes"], graph["edge_index"]
    features = graph["node_feat"]
    if features is None:
        features = mean_edge_features(edges, graph["edge_feat"], num_nodes)
    multilabel = labels.shape[1] > 1
    num_classes = dataset.num_tasks if multilabel else dataset.num_classes
    return published_graph(
        config.name,
        Statistics(num_nodes, edges.shape[1], features.shape[1], num_classes),
        edges,
        features.astype(np.float32, copy=False),
        labels if multilabel else labels[:, 0],
        split_from_nodes(num_nodes, split["train"], split["valid"], split["test"]),
        metric={"rocauc": "roc_auc", "acc": "accuracy"}[dataset.eval_metric],
    )


def mean_edge_features(edges: Array, edge_features: Array, num_nodes: int) -> Array:
    """[N, F]: the mean feature of each node's incident edges, 0 for isolated nodes.

    OGB's example for ogbn-proteins takes the same node features.
    """

    def summed(weights: Array | None) -> Array:
        return np.sum([np.bincount(ends, weights, minlength=num_nodes) for ends in edges], axis=0)

    count = np.maximum(summed(None), 1)
    return np.stack([summed(column) / count for column in edge_features.T], axis=1).astype(np.float32)


@contextlib.contextmanager
def ogb_session() -> Iterator[None]:
    """Runs ogb without network access and output, and lets torch.load accept the NumPy index arrays that ogb saves.

    On import ogb looks for a newer version of itself, in a thread that delays the end of the process; without the
    package `outdated` it does not.
    """
    sys.modules.setdefault("outdated", None)  # type: ignore[arg-type]
    reconstruct = np.empty(0).__reduce__()[0]
    old_name = (reconstruct, "numpy.core.multiarray._reconstruct")  # its name in files written with NumPy 1
    dtypes = [type(np.dtype(kind)) for kind in ("int32", "int64")]
    allowed: list[Any] = [reconstruct, old_name, np.ndarray, np.dtype, *dtypes]
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        torch.serialization.safe_globals(allowed),
    ):
        yield


def _read(config: PublishedConfig) -> tuple[Any, dict[str, Array]]:
    """(ogb's dataset with the edges as the files list them, its split as {train, valid, test: nodes})."""
    with ogb_session():
        import pandas as pd
        from ogb.io.read_graph_raw import read_csv_graph_raw
        from ogb.nodeproppred import NodePropPredDataset

        class WithoutCache(NodePropPredDataset):
            """Skips ogb's cache, a pickle that torch.load refuses, and its inverse edges, which undirected_csr adds."""

            def pre_process(self) -> None:
                raw = Path(self.root) / "raw"
                self.graph = read_csv_graph_raw(str(raw))[0]
                self.labels = pd.read_csv(raw / "node-label.csv.gz", header=None).to_numpy()

        folder = Path(config.root) / config.name.replace("-", "_")
        _require_raw_files(config.name, folder)
        with explain_read_errors(str(folder), "ogb"):
            dataset = WithoutCache(config.name, root=config.root)
            return dataset, dataset.get_idx_split()


def _require_raw_files(name: str, folder: Path) -> None:
    """Raises UserError where a file is missing that ogb would otherwise download, or ask about on stdin."""
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
