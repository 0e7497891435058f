"""dataset=memory: graphs that llcg_dist.fit was called with, known by their content."""

import contextlib
import hashlib
import json
from collections.abc import Iterator

import numpy as np

from llcg_dist.config.own_data import MemoryConfig
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError

_graphs: dict[str, Graph] = {}


@contextlib.contextmanager
def in_memory(graph: Graph) -> Iterator[str]:
    """The graph's digest, under which `load` finds the graph while the context is open."""
    digest = graph_digest(graph)
    _graphs[digest] = graph
    try:
        yield digest
    finally:
        _graphs.pop(digest, None)


def load(config: MemoryConfig) -> Graph:
    if config.digest not in _graphs:
        rule = "this graph was in the memory of llcg_dist.fit; its parts in partition.root are needed"
        raise UserError(f"dataset=memory: {rule}, or call fit with it again")
    return _graphs[config.digest]


def graph_digest(graph: Graph) -> str:
    """SHA-256 of all arrays, their types and shapes, and what they mean."""
    digest = hashlib.sha256(json.dumps([graph.num_classes, graph.task, graph.metric]).encode())
    arrays = {name: getattr(graph, name) for name in ("indptr", "indices", "features", "labels", "split")}
    for name, array in (arrays | {f"{what}_names": names for what, names in graph.names.items()}).items():
        _add(digest, name, array)
    return digest.hexdigest()


def _add(digest: "hashlib._Hash", name: str, array: Array) -> None:
    digest.update(json.dumps([name, str(array.dtype), list(array.shape)]).encode())
    digest.update(np.ascontiguousarray(array).data)
