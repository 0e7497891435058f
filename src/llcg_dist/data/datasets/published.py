"""Shared by the loaders of published graphs: required files, expected sizes, errors of damaged files, the Graph."""

import contextlib
import logging
import os
import pickle
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from llcg_dist.data.csr import undirected_csr
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError, one_line

log = logging.getLogger(__name__)

_DECODING_ERRORS = (zlib.error, zipfile.BadZipFile, pickle.UnpicklingError)


@dataclass(frozen=True)
class Statistics:
    """Sizes of a graph. Edges as its source counts them: flickr and yelp in both directions, arxiv and mag240m directed
    citations, the others undirected."""

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


def published_graph(
    name: str, statistics: Statistics, edges: Array, features: Array, labels: Array, split: Array, metric: str
) -> Graph:
    """The undirected graph of `edges` [2, M]; labels [N] make it multiclass, labels [N, C] multi-label."""
    check_statistics(name, statistics)
    indptr, indices = undirected_csr(edges[0], edges[1], statistics.nodes)
    task = "multiclass" if labels.ndim == 1 else "multilabel"
    labels = labels.astype(np.int64 if task == "multiclass" else np.float32, copy=False)
    return Graph(indptr, indices, features, labels, split, statistics.classes, task, metric)


def check_statistics(name: str, actual: Statistics) -> None:
    """Logs a warning where a graph has other sizes than the one that results are published for."""
    expected = _EXPECTED.get(name, actual)
    differing = [
        f"{getattr(actual, f.name):,} {f.name} instead of {getattr(expected, f.name):,}"
        for f in fields(Statistics)
        if getattr(actual, f.name) != getattr(expected, f.name)
    ]
    if differing:
        log.warning("dataset %s is not the published graph: %s", name, ", ".join(differing))


def require_files(dataset: str, paths: Iterable[Path], advice: str) -> None:
    """Raises UserError that names the missing files, before a library's loader would download them or ask on stdin."""
    missing = [path for path in paths if not path.exists()]
    if missing:
        others = "".join(f", {path.name}" for path in missing[1:])
        raise UserError(f"dataset={dataset}: no file {missing[0]}{others}; {advice}, or set dataset.root")


@contextlib.contextmanager
def explain_read_errors(location: str, loader: str) -> Iterator[None]:
    """Turns what a library's loader raises on a damaged file into a UserError that says where the files are."""
    try:
        yield
    except (OSError, EOFError, ValueError, KeyError, RuntimeError, *_DECODING_ERRORS) as error:
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise UserError(f"{location}: {loader} cannot read its files ({reason})") from None


def is_writable(folder: Path) -> bool:
    """Whether files may be created there. A folder whose mode is read-only is left alone even by root."""
    return os.access(folder, os.W_OK) and bool(folder.stat().st_mode & 0o222)
