"""WordNet's files become those of dataset=files: a few lines of the same format, and the package where it is here."""

from pathlib import Path

import numpy as np
import pytest
from studies.wordnet import SOURCE, edges, gloss_features, read_all, read_synsets, settings, write

from llcg_dist.config.compose import load_config
from llcg_dist.data.datasets import load_dataset
from llcg_dist.errors import UserError

LICENCE = "  1 This software and database is being provided to you, the LICENSEE, by  \n"
NOUNS = """\
00001740 03 n 01 entity 0 002 ~ 00001930 n 0000 + 00001740 v 0101 | that which is perceived or known
00001930 03 n 0b a 0 b 0 c 0 d 0 e 0 f 0 g 0 h 0 i 0 j 0 k 0 001 @ 00001740 n 0000 | an entity that has existence
"""
VERBS = (
    "00001740 29 v 02 breathe 0 respire 0 001 + 00001740 n 0101 02 + 02 00 + 08 00 | draw air; that which is known\n"
)
ADJECTIVES = """\
00002098 00 a 01 unable 0 001 ! 00002200 a 0101 | (usually followed by `to') not having the means
00002200 00 s 01 able 0 001 & 00002098 s 0000 | having the means; "able | willing"
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    texts = {"data.noun": NOUNS, "data.verb": VERBS, "data.adj": ADJECTIVES, "data.adv": ""}
    for name, text in texts.items():
        (tmp_path / name).write_text(LICENCE + text, encoding="latin-1")
    return tmp_path


def test_a_line_by_hand() -> None:
    """Eleven words are 0b; what follows the pointers of a verb are its sentence frames."""
    first, second = read_synsets((LICENCE + NOUNS).splitlines(), "n")
    assert first.name == ("n", "00001740")
    assert first.pointers == [("n", "00001930"), ("v", "00001740")]
    assert second.pointers == [("n", "00001740")]
    [verb] = read_synsets(VERBS.splitlines(), "v")
    assert (verb.label, verb.pointers) == (29, [("n", "00001740")])
    assert verb.gloss == "draw air; that which is known"


def test_satellites_are_adjectives(source: Path) -> None:
    synsets = read_all(source)
    assert [synset.label for synset in synsets] == [3, 3, 29, 0, 0]
    assert edges(synsets).tolist() == [[0, 0, 1, 2, 3, 4], [1, 2, 0, 0, 4, 3]]


def test_rare_words_weigh_more_and_rows_have_length_one() -> None:
    values, words = gloss_features(["the cat", "the dog, the DOG", "the bird and a cat", ""], width=3)
    assert words == ["the", "cat", "and"]  # of those in one gloss the first of the alphabet
    assert np.linalg.norm(values.astype(float), axis=1) == pytest.approx([1, 1, 1, 0], abs=1e-3)
    assert values[0, 1] / values[0, 0] == pytest.approx(np.log(4 / 2) / np.log(4 / 3), rel=1e-2)
    assert values[1].tolist() == [1, 0, 0]


def test_the_files_are_read_by_dataset_files(source: Path) -> None:
    out = source / "graph"
    assert write(source, out, width=8) == (5, 6)
    graph = load_dataset(load_config([*settings(out), "dataset.train_fraction=0.4"]).dataset)
    assert (graph.num_nodes, graph.num_features, graph.num_edges) == (5, 8, 3)
    assert len(set(graph.labels.tolist())) == 3


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"data\.noun: not found; install the package wordnet-base"):
        read_all(tmp_path)


@pytest.mark.full
@pytest.mark.skipif(not (SOURCE / "data.noun").exists(), reason="no WordNet here (Debian package wordnet-base)")
def test_all_of_it() -> None:
    synsets = read_all(SOURCE)
    assert len(synsets) == 117_659
    assert {synset.label for synset in synsets} == set(range(45))
    src, dst = edges(synsets)
    pairs = {(min(ends), max(ends)) for ends in zip(src.tolist(), dst.tolist(), strict=True) if ends[0] != ends[1]}
    assert 180_000 < len(pairs) < 190_000
