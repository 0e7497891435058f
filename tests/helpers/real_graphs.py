"""Topologies of real graphs: two of LLCG_TEST_DATA, and all of WordNet."""

from pathlib import Path

import pytest
from studies.wordnet import SOURCE, edges, read_all

from llcg_dist.config.compose import load_config
from llcg_dist.data.csr import Topology, undirected_csr
from llcg_dist.data.datasets import load_dataset
from tests.helpers.raw_files import real_data

_SETTINGS = {
    "computers": ["dataset=amazon", "dataset.name=Computers"],
    "tolokers": ["dataset=heterophilous", "dataset.name=Tolokers"],
}
_FOLDERS = {"computers": "Amazon", "tolokers": "Hetero"}
REAL_GRAPHS = [*_SETTINGS, "wordnet"]


def real_topology(name: str, folder: Path) -> Topology:
    """Skips the test where the files are not here; `folder` is for a copy of them."""
    if name == "wordnet":
        return _wordnet()
    root = real_data(_FOLDERS[name], folder)
    graph = load_dataset(load_config([*_SETTINGS[name], f"dataset.root={root}"]).dataset)
    return Topology(graph.indptr, graph.indices)


def _wordnet() -> Topology:
    """117,659 synsets of nouns, verbs, adjectives and adverbs, and the pointers between them."""
    if not (SOURCE / "data.noun").exists():
        pytest.skip("no WordNet here (Debian package wordnet-base)")
    synsets = read_all(SOURCE)
    src, dst = edges(synsets)
    return Topology(*undirected_csr(src, dst, len(synsets)))
