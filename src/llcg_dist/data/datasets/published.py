"""What loaders of published graphs share: files that must be there, and figures that must come out."""

import contextlib
import logging
import os
import pickle
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from llcg_dist.data.datasets.tables import one_line
from llcg_dist.errors import UserError

log = logging.getLogger(__name__)

_DAMAGED = (zlib.error, zipfile.BadZipFile, pickle.UnpicklingError)


@dataclass(frozen=True)
class Statistics:
    """Edges as the source counts them: flickr and yelp both directions, arxiv and mag240m directed, else pairs."""

    nodes: int
    edges: int
    features: int
    classes: int


_EXPECTED = {
    "flickr": Statistics(89_250, 899_756, 500, 7),
    "ogbn-proteins": Statistics(132_534, 39_561_252, 8, 112),
    "ogbn-arxiv": Statistics(169_343, 1_166_243, 128, 40),
    "reddit": Statistics(232_965, 11_606_919, 602, 41),
    "yelp": Statistics(716_847, 13_954_819, 300, 100),
    "ogbn-products": Statistics(2_449_029, 61_859_140, 100, 47),
    "mag240m": Statistics(121_751_666, 1_297_748_926, 768, 153),
    "Cora": Statistics(2_708, 5_278, 1_433, 7),
    "Computers": Statistics(13_752, 245_861, 767, 10),
    "Tolokers": Statistics(11_758, 519_000, 10, 2),
}


def check_statistics(name: str, found: Statistics) -> None:
    """Warns where a graph is not the one that results are published for."""
    expected = _EXPECTED.get(name, found)
    differing = [
        f"{getattr(found, f.name):,} {f.name} instead of {getattr(expected, f.name):,}"
        for f in fields(Statistics)
        if getattr(found, f.name) != getattr(expected, f.name)
    ]
    if differing:
        log.warning("dataset %s is not the published graph: %s", name, ", ".join(differing))


def require_files(dataset: str, paths: Iterable[Path], advice: str) -> None:
    """Raises UserError, naming what is missing, before a standard loader would go to the network or ask on stdin."""
    missing = [path for path in paths if not path.exists()]
    if missing:
        others = "".join(f", {path.name}" for path in missing[1:])
        raise UserError(f"dataset={dataset}: no file {missing[0]}{others}; {advice}, or set dataset.root")


@contextlib.contextmanager
def reading(place: str, loader: str) -> Iterator[None]:
    """What a standard loader raises on a damaged file, told as the user's: which files to look at."""
    try:
        yield
    except (OSError, EOFError, ValueError, KeyError, RuntimeError, *_DAMAGED) as error:
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise UserError(f"{place}: {loader} cannot read its files ({reason})") from None


def is_writable(folder: Path) -> bool:
    """By the folder's own mode too: what is marked read-only stays as it is even for root."""
    return os.access(folder, os.W_OK) and bool(folder.stat().st_mode & 0o222)
