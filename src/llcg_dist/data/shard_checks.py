"""Consistency of a stored graph: a rank must not read past an array, whoever wrote the files."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from llcg_dist.data.graph import METRICS, TASKS, UNUSED, Graph
from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError

REBUILD = "remove the store and build it again with `llcg partition`"


def require(holds: bool, path: Path, rule: str) -> None:
    """Raises UserError with the file and the rule that it breaks."""
    if not holds:
        raise UserError(f"{path}: {rule}; {REBUILD}")


def arrays_fit_together(graph: Graph) -> bool:
    """Cheap checks of kinds and lengths, which need no pass over the arrays."""
    num_nodes = graph.num_nodes
    rows = {name: len(getattr(graph, name)) for name in ("features", "labels", "split")}
    return (
        is_topology(graph.indptr, graph.indices)
        and graph.split.ndim == 1
        and graph.features.ndim == 2
        and all(count == num_nodes for count in rows.values())
        and isinstance(graph.num_classes, int)
        and graph.num_classes > 0
        and graph.task in TASKS
        and graph.metric in METRICS
    )


def require_in_range(path: Path, graph: Graph, extra: Mapping[str, Array]) -> None:
    """Raises UserError where an edge, a label or a part has a number that stands for none: kernels do not look."""
    n = graph.num_nodes
    require_edges_in_range(path, graph.indptr, graph.indices)
    require(graph.features.dtype in (np.float32, np.float16), path, f"features are {graph.features.dtype}")
    kind = graph.labels.dtype.kind
    if graph.task == "multiclass":
        used = graph.labels[graph.split != UNUSED] if graph.labels.ndim == 1 and kind == "i" else None
        require(used is not None and _within(used, 0, graph.num_classes), path, "a label is outside the classes")
    else:
        fits = kind == "f" and graph.labels.shape == (n, graph.num_classes)
        require(fits, path, f"labels are not of shape [{n}, {graph.num_classes}]")
    if "assignment" in extra:
        require_numbers(path, "assignment", extra["assignment"], n, n)
    if "order" in extra:
        order = extra["order"]
        require_numbers(path, "order", order, n, n)
        require(int(np.bincount(order).max()) == 1, path, "order does not name every node once")


def is_topology(indptr: Array, indices: Array) -> bool:
    """Cheap checks of a topology in CSR form, which need no pass over the arrays."""
    return (
        indptr.ndim == indices.ndim == 1
        and indptr.dtype == indices.dtype
        and indptr.dtype in (np.int32, np.int64)
        and len(indptr) > 1
        and int(indptr[0]) == 0
        and int(indptr[-1]) == len(indices)
    )


def require_edges_in_range(path: Path, indptr: Array, indices: Array) -> None:
    """Raises UserError where a row of a topology ends before it begins, or an edge ends outside of the nodes."""
    n = len(indptr) - 1
    require(bool((np.diff(indptr) >= 0).all()), path, "indptr is not ascending")
    require(_within(indices, 0, n), path, f"an edge ends outside the nodes 0..{n - 1}")


def require_numbers(path: Path, name: str, values: Array, length: int, bound: int) -> None:
    """Raises UserError where an array is not of `length` whole numbers from 0 to bound - 1."""
    fits = values.shape == (length,) and values.dtype.kind == "i" and _within(values, 0, bound)
    require(fits, path, f"{name} does not hold {length} numbers from 0 to {bound - 1}")


def _within(values: Array, low: int, high: int) -> bool:
    return len(values) == 0 or (int(values.min()) >= low and int(values.max()) < high)
