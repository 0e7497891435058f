"""The papers of MAG240M and their citations, in the layout of ogb.lsc: dataset.root/mag240m_kddcup2021.

Features (768 columns of float16, 174 GiB) are never read as a whole: they stay memory-mapped until the store copies
them, a block of rows at a time. Authors and institutions are not used.
"""

from pathlib import Path

import numpy as np

from llcg_dist.config.datasets import PublishedConfig
from llcg_dist.data.csr import undirected_csr
from llcg_dist.data.datasets.ogbn import ogb_session
from llcg_dist.data.datasets.published import Statistics, check_statistics, reading, require_files
from llcg_dist.data.datasets.splits import split_of
from llcg_dist.data.graph import TEST, UNUSED, Graph

_FOLDER = "mag240m_kddcup2021"
_CITATIONS = Path("processed", "paper___cites___paper", "edge_index.npy")
_PAPERS = Path("processed", "paper")


def load(config: PublishedConfig) -> Graph:
    folder = Path(config.root) / _FOLDER
    own = [_PAPERS / "node_feat.npy", _PAPERS / "node_label.npy", _CITATIONS]
    files = [*map(Path, ("RELEASE_v1.txt", "meta.pt", "split_dict.pt")), *own]
    advice = f"unpack mag240m_kddcup2021.zip of https://ogb.stanford.edu/docs/lsc/mag240m/ into {config.root}"
    require_files(config.source, [folder / file for file in files], advice)
    with reading(str(folder), "ogb.lsc"), ogb_session():
        from ogb.lsc import MAG240MDataset

        dataset = MAG240MDataset(config.root)
        features, found = dataset.paper_feat, dataset.all_paper_label
        edges = np.load(folder / _CITATIONS, mmap_mode="r")  # dataset.edge_index would read all of it
    num_papers = dataset.num_papers
    check_statistics(config.name, Statistics(num_papers, edges.shape[1], features.shape[1], dataset.num_classes))
    labels = np.where(np.isnan(found), -1, found).astype(np.int64)
    split = split_of(num_papers, *(dataset.get_idx_split(part) for part in ("train", "valid", "test-whole")))
    split[(split == TEST) & (labels < 0)] = UNUSED  # the labels of the official test papers are kept by the organisers
    indptr, indices = undirected_csr(edges[0], edges[1], num_papers)
    return Graph(indptr, indices, features, labels, split, dataset.num_classes)
