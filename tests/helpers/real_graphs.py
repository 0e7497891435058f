"""Topologies of real graphs: two of LLCG_TEST_DATA, and all of WordNet."""

from pathlib import Path

import numpy as np
import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.data.csr import Topology, undirected_csr
from llcg_dist.data.datasets import load_dataset
from tests.helpers.raw_files import real_data

_WORDNET = Path("/usr/share/wordnet")
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
    if not (_WORDNET / "data.noun").exists():
        pytest.skip("no WordNet here (Debian package wordnet-base)")
    numbers: dict[tuple[str, str], int] = {}
    ends: list[tuple[int, int]] = []
    for letter, name in (("n", "noun"), ("v", "verb"), ("a", "adj"), ("r", "adv")):
        for line in (_WORDNET / f"data.{name}").read_text(encoding="latin-1").splitlines():
            if line.startswith("  "):  # the licence
                continue
            words = line.split("|")[0].split()
            first = 5 + 2 * int(words[3], 16)  # after the words of the synset, and the number of pointers
            node = numbers.setdefault((letter, words[0]), len(numbers))
            for pointer in range(int(words[first - 1])):
                offset, kind = words[first + 4 * pointer + 1 : first + 4 * pointer + 3]
                other = (kind.replace("s", "a"), offset)
                ends.append((node, numbers.setdefault(other, len(numbers))))
    src, dst = np.array(ends).T
    return Topology(*undirected_csr(src, dst, len(numbers)))
