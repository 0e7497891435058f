"""The papers of MAG240M and their citations, in the layout of ogb.lsc: dataset.root/mag240m_kddcup2021.

Features (768 columns of float16, 174 GiB) are larger than memory: they stay memory-mapped until the store copies them
in chunks of rows. Authors and institutions are not used.
"""

from pathlib import Path

import numpy as np

from llcg_dist.config.datasets import PublishedConfig
from llcg_dist.data.datasets.ogbn import ogb_session
from llcg_dist.data.datasets.published import Statistics, explain_read_errors, published_graph, require_files
from llcg_dist.data.datasets.splits import split_from_nodes
from llcg_dist.data.graph import TEST, UNUSED, Graph

_FOLDER = "mag240m_kddcup2021"
_CITATIONS = Path("processed", "paper___cites___paper", "edge_index.npy")
_PAPERS = Path("processed", "paper")


def load(config: PublishedConfig) -> Graph:
    """Reads the citation graph; papers without a public label are UNUSED."""
    folder = Path(config.root) / _FOLDER
    arrays = [_PAPERS / "node_feat.npy", _PAPERS / "node_label.npy", _CITATIONS]
    files = [*map(Path, ("RELEASE_v1.txt", "meta.pt", "split_dict.pt")), *arrays]
    advice = f"unpack mag240m_kddcup2021.zip of https://ogb.stanford.edu/docs/lsc/mag240m/ into {config.root}"
    require_files(config.source, [folder / file for file in files], advice)
    with explain_read_errors(str(folder), "ogb.lsc"), ogb_session():
        from ogb.lsc import MAG240MDataset

        dataset = MAG240MDataset(config.root)
        features, float_labels = dataset.paper_feat, dataset.all_paper_label
        edges = np.load(folder / _CITATIONS, mmap_mode="r")  # dataset.edge_index would read the entire file into memory
    num_papers = dataset.num_papers
    statistics = Statistics(num_papers, edges.shape[1], features.shape[1], dataset.num_classes)
    labels = np.where(np.isnan(float_labels), -1, float_labels).astype(np.int64)
    split = split_from_nodes(num_papers, *(dataset.get_idx_split(part) for part in ("train", "valid", "test-whole")))
    split[(split == TEST) & (labels < 0)] = UNUSED  # the labels of the official test papers are kept by the organisers
    return published_graph(config.name, statistics, edges, features, labels, split, metric="accuracy")
