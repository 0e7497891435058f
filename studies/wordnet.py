"""WordNet 3.0 as the files of dataset=files: a real graph of 117,659 nodes.

    python -m studies.wordnet [--source /usr/share/wordnet] [--out data/wordnet] [--features 256]

Reads data.noun, data.verb, data.adj and data.adv of Debian's package wordnet-base. A node is a synset; an edge is a
pointer between two of them, semantic (hypernyms, parts, ...) or lexical (antonyms, derivations, ...); features are the
words of its gloss, weighed by how rare they are; its class is the lexicographer's file that it is in, of 45. Writes
edges.npy [2, M], features.npy [N, F], labels.npy [N], and prints the overrides that read them.
"""

import argparse
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from llcg_dist.config.compose import quoted_override
from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError
from llcg_dist.records.console import say

WORDNET = "wordnet"
"""What studies call it, and its folder beside the other graphs."""

SOURCE = Path("/usr/share/wordnet")
FILES = {"n": "data.noun", "v": "data.verb", "a": "data.adj", "r": "data.adv"}
_SATELLITE = "s"
"""The letter of an adjective around another one; pointers call it by this letter or by `a`."""
_SHORTEST_WORD = 3
Name = tuple[str, str]
"""A synset: the letter of its file, and its place there."""


@dataclass(frozen=True)
class Synset:
    name: Name
    label: int
    """The number of its lexicographer file, 0 to 44."""
    pointers: list[Name]
    """The synsets that it or one of its words points to."""
    gloss: str


def read_synsets(lines: Iterable[str], letter: str) -> Iterator[Synset]:
    """The synsets of a file: `offset file type w_cnt (word id)* p_cnt (symbol offset type source/target)* | gloss`.

    Lines that begin with blanks are the licence. The number of words is hexadecimal, that of pointers decimal.
    """
    for line in lines:
        if line.startswith("  ") or not line.strip():
            continue
        facts, _, gloss = line.partition("|")
        fields = facts.split()
        first = 5 + 2 * int(fields[3], 16)
        ends = [fields[place + 1 : place + 3] for place in range(first, first + 4 * int(fields[first - 1]), 4)]
        pointers = [(_file_letter(kind), offset) for offset, kind in ends]
        yield Synset((letter, fields[0]), int(fields[1]), pointers, gloss.strip())


def _file_letter(kind: str) -> str:
    return "a" if kind == _SATELLITE else kind


def read_all(source: Path) -> list[Synset]:
    """The synsets of all four files, one file after the other."""
    synsets: list[Synset] = []
    for letter, name in FILES.items():
        if not (source / name).exists():
            raise UserError(f"{source / name}: not found; install the package wordnet-base, or name its folder")
        with (source / name).open(encoding="latin-1") as lines:
            synsets += read_synsets(lines, letter)
    return synsets


def edges(synsets: Sequence[Synset]) -> Array:
    """[2, M]: every pointer, from the synset to the one it names."""
    number = {synset.name: place for place, synset in enumerate(synsets)}
    ends = [(place, number[other]) for place, synset in enumerate(synsets) for other in synset.pointers]
    return np.array(ends, np.int64).reshape(-1, 2).T


def gloss_features(glosses: Sequence[str], width: int) -> tuple[Array, list[str]]:
    """[N, width] float16 and the words of its columns: the `width` words that most glosses have. A gloss has log(N / n)
    where it has a word that n of them have; rows are scaled to length 1."""
    words = [set(re.findall(rf"[a-z]{{{_SHORTEST_WORD},}}", gloss.lower())) for gloss in glosses]
    counted = Counter(word for of_gloss in words for word in of_gloss)
    chosen = sorted(counted, key=lambda word: (-counted[word], word))[:width]
    column = {word: place for place, word in enumerate(chosen)}
    rarity = np.array([math.log(len(glosses) / counted[word]) for word in chosen], np.float32)
    found = np.zeros((len(glosses), len(chosen)), np.float32)
    for row, of_gloss in zip(found, words, strict=True):
        places = [column[word] for word in of_gloss if word in column]
        row[places] = rarity[places]
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return (found / np.maximum(lengths, 1e-6)).astype(np.float16), chosen


def write(source: Path, out: Path, width: int) -> tuple[int, int]:
    """Writes the three files; returns the numbers of nodes and of pointers."""
    synsets = read_all(source)
    out.mkdir(parents=True, exist_ok=True)
    pointers = edges(synsets)
    np.save(out / "edges.npy", pointers)
    np.save(out / "features.npy", gloss_features([synset.gloss for synset in synsets], width)[0])
    np.save(out / "labels.npy", np.array([f"file{synset.label:02}" for synset in synsets]))
    return len(synsets), pointers.shape[1]


def settings(folder: Path) -> list[str]:
    """Overrides that read the files of `write`."""
    files = {name: str(folder.absolute() / f"{name}.npy") for name in ("edges", "features", "labels")}
    paths = [quoted_override(f"dataset.{name}", path) for name, path in files.items()]
    return ["dataset=files", "dataset.name=wordnet", *paths]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, default=SOURCE)
    parser.add_argument("--out", type=Path, default=Path("data/wordnet"))
    parser.add_argument("--features", type=int, default=256)
    arguments = parser.parse_args()
    nodes, pointers = write(arguments.source, arguments.out, arguments.features)
    say(f"{nodes:,} synsets, {pointers:,} pointers: {' '.join(settings(arguments.out))}")


if __name__ == "__main__":
    main()
