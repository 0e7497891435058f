"""The verbs of WordNet 3.0 (Debian's wordnet-base) as files of the kind that people have: semicolons, Latin-1, columns
with German names, a column of weights, labels of some nodes only, masks.

Nodes are synsets, named by their first word; edges are WordNet's pointers; a class is a lexicographer file; several
labels are the sentence frames of a verb; features count the words of its gloss.
"""

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from llcg_dist.data.rows import Array

FILE = Path("/usr/share/wordnet/data.verb")
CLASSES = {
    "29": "Körper",
    "33": "Wettkampf",
    "34": "=Verzehr",  # what a spreadsheet takes for a formula
    "37": "Gefühl",
    "39": "Wahrnehmung",
    "43": "Wetter",
}
FRAMES = {"01": "allein", "02": "unpersönlich", "08": "jemand tut etwas", "09": "jemand tut jemandem"}
FEATURES = 48
COLUMNS = {"node": "wort", "src": "von", "dst": "nach", "label": "klasse"}
FILES = [
    "dataset=files",
    *(f"dataset.{name}={name}.csv" for name in ("edges", "features", "labels")),
    "dataset.delimiter=semicolon",
    "dataset.encoding=latin-1",
    *(f"dataset.columns.{role}={name}" for role, name in COLUMNS.items()),
    "dataset.columns.ignore=[gewicht]",
]
"""The settings that read the files of `Files.write`."""
MASKS = [f"dataset.{name}_mask={name}.npy" for name in ("train", "val", "test")]


@dataclass(frozen=True)
class Synset:
    offset: str
    name: str
    category: str
    pointers: list[str]
    frames: list[str]
    gloss: str


def synsets() -> list[Synset]:
    """Those of the categories in CLASSES, in the order of the file; skips the test where WordNet is not installed."""
    if not FILE.exists():
        pytest.skip("no WordNet here (Debian package wordnet-base)")
    lines = [line for line in FILE.read_text().splitlines() if not line.startswith("  ")]
    return [synset for synset in map(_parse, lines) if synset.category in CLASSES]


def _parse(line: str) -> Synset:
    """A line of data.verb (wndb(5WN)): offset, category, v, words, pointers, frames | gloss."""
    data, _, gloss = line.partition("|")
    fields = iter(data.split())
    offset, category, _, words = (next(fields) for _ in range(4))
    names = [next(fields) + next(fields)[:0] for _ in range(int(words, 16))]
    pointers = [tuple(next(fields) for _ in range(4)) for _ in range(int(next(fields)))]
    frames = [tuple(next(fields) for _ in range(3)) for _ in range(int(next(fields)))]
    to_verbs = [target for _, target, part_of_speech, _ in pointers if part_of_speech == "v"]
    return Synset(offset, names[0], category, to_verbs, [frame for _, frame, _ in frames], gloss)


class Files:
    """Writes the graph into a folder, a file at a time, and knows what stands in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.synsets = folder, synsets()
        self.ids = [f"{synset.name}#{synset.offset}" for synset in self.synsets]
        self.classes = [CLASSES[synset.category] for synset in self.synsets]
        draw = np.random.default_rng(0).random(len(self.ids))
        self.labelled = draw < 0.9
        """Every tenth verb is in no file of labels."""
        self.train, self.val = draw < 0.5, (draw >= 0.5) & (draw < 0.7)
        self.test = (draw >= 0.7) & self.labelled

    def edges(self) -> pd.DataFrame:
        """von, nach, gewicht: the pointers between verbs that are here; the weight is made up of their number."""
        ids = {synset.offset: name for synset, name in zip(self.synsets, self.ids, strict=True)}
        pairs = [(ids[s.offset], ids[target]) for s in self.synsets for target in s.pointers if target in ids]
        return pd.DataFrame(pairs, columns=["von", "nach"]).assign(gewicht=np.arange(len(pairs)) % 3 + 1)

    def isolated(self) -> list[str]:
        """Verbs without an edge."""
        edges = self.edges()
        return sorted(set(self.ids) - set(edges["von"]) - set(edges["nach"]))

    def features(self) -> Array:
        """[N, FEATURES]: how often words of the gloss fall on each column."""
        values = np.zeros((len(self.synsets), FEATURES), np.float32)
        for row, synset in zip(values, self.synsets, strict=True):
            for word in synset.gloss.split():
                row[zlib.crc32(word.encode()) % FEATURES] += 1
        return values

    def labels(self) -> pd.DataFrame:
        """wort, klasse: of the labelled verbs only."""
        return pd.DataFrame({"wort": self.ids, "klasse": self.classes})[self.labelled]

    def frames(self) -> pd.DataFrame:
        """wort, and a column of 0 and 1 for each frame."""
        columns = {name: [int(number in s.frames) for s in self.synsets] for number, name in FRAMES.items()}
        return pd.DataFrame({"wort": self.ids} | columns)

    def write(self) -> None:
        """edges.csv, features.csv, labels.csv and frames.csv; three masks; and the labels as numbers, labels.npy."""
        table = pd.DataFrame(self.features().astype(int), columns=[f"w{i}" for i in range(FEATURES)])
        table.insert(0, "wort", self.ids)
        frames = {"edges": self.edges(), "features": table, "labels": self.labels(), "frames": self.frames()}
        for name, frame in frames.items():
            frame.to_csv(self.folder / f"{name}.csv", sep=";", encoding="latin-1", index=False)
        for name in ("train", "val", "test"):
            np.save(self.folder / f"{name}.npy", getattr(self, name))
        numbers = pd.Categorical(self.classes).codes.astype(np.float64)
        np.save(self.folder / "labels.npy", np.where(self.labelled, numbers, np.nan))
