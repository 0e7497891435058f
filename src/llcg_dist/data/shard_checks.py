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
        graph.indptr.ndim == graph.indices.ndim == graph.split.ndim == 1
        and graph.features.ndim == 2
        and graph.indptr.dtype == graph.indices.dtype
        and graph.indptr.dtype in (np.int32, np.int64)
        and num_nodes > 0
        and all(count == num_nodes for count in rows.values())
        and int(graph.indptr[0]) == 0
        and int(graph.indptr[-1]) == len(graph.indices)
        and isinstance(graph.num_classes, int)
        and graph.num_classes > 0
        and graph.task in TASKS
        and graph.metric in METRICS
    )


def require_in_range(path: Path, graph: Graph, extra: Mapping[str, Array]) -> None:
    """Raises UserError where an edge, a label or a part has a number that stands for none: kernels do not look."""
    n = graph.num_nodes
    require(bool((np.diff(graph.indptr) >= 0).all()), path, "indptr is not ascending")
    require(_within(graph.indices, 0, n), path, f"an edge ends outside the nodes 0..{n - 1}")
    require(graph.features.dtype in (np.float32, np.float16), path, f"features are {graph.features.dtype}")
    kind = graph.labels.dtype.kind
    if graph.task == "multiclass":
        used = graph.labels[graph.split != UNUSED] if graph.labels.ndim == 1 and kind == "i" else None
        require(used is not None and _within(used, 0, graph.num_classes), path, "a label is outside the classes")
    else:
        fits = kind == "f" and graph.labels.shape == (n, graph.num_classes)
        require(fits, path, f"labels are not of shape [{n}, {graph.num_classes}]")
    if "assignment" in extra:
        parts = extra["assignment"]
        fits = parts.shape == (n,) and parts.dtype.kind == "i" and _within(parts, 0, n)
        require(fits, path, "assignment does not name a part for every node")
    if "order" in extra:
        order = extra["order"]
        fits = order.shape == (n,) and order.dtype.kind == "i" and _within(order, 0, n)
        require(fits and int(np.bincount(order).max()) == 1, path, "order does not name every node once")


def _within(values: Array, low: int, high: int) -> bool:
    return len(values) == 0 or (int(values.min()) >= low and int(values.max()) < high)
