"""The process that METIS runs in: `python -m llcg_dist.data.metis_process dgl|pymetis FOLDER PARTS`.

Reads indptr.npy, indices.npy and, where parts shall be balanced by type, types.npy; with pymetis, weights from
node_weights.npy and edge_weights.npy. Writes assignment.npy. No other file imports DGL or pymetis.
"""

import contextlib
import ctypes
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from llcg_dist.data.child_process import die_with_parent
from llcg_dist.data.rows import Array
from llcg_dist.errors import first_line


def main(library: str, folder: str, num_parts: int) -> None:
    die_with_parent()  # gigabytes that nobody waits for any more
    os.chdir(folder)  # METIS writes coarsened graphs to files in the current folder
    # Private copies of mapped pages, should METIS write to them.
    indptr, indices = (np.load(f"{name}.npy", mmap_mode="c") for name in ("indptr", "indices"))
    partition = {"dgl": _partition_with_dgl, "pymetis": _partition_with_pymetis}[library]
    # Larger than any stack that glibc would cache and reuse.
    threading.stack_size(64 << 20)
    with ThreadPoolExecutor(1) as thread:
        assignment = thread.submit(partition, indptr, indices, num_parts).result()
    np.save("assignment.npy", assignment.astype(np.int32))


def _optional(name: str) -> Array | None:
    """An array of the folder, where it is there."""
    return np.load(f"{name}.npy") if Path(f"{name}.npy").exists() else None


def _partition_with_dgl(indptr: Array, indices: Array, num_parts: int) -> Array:
    import dgl
    import torch

    # DGL makes the graph symmetric itself: it gets each edge once, which halves what it starts from.
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    once = row < indices
    edges = torch.from_numpy(row[once]), torch.from_numpy(indices[once])
    del row, once
    graph = dgl.graph(edges, num_nodes=len(indptr) - 1)
    del edges
    types = _optional("types")
    with contextlib.redirect_stdout(sys.stderr):
        parts = dgl.metis_partition_assignment(graph, num_parts, None if types is None else torch.from_numpy(types))
    if parts is None:
        raise RuntimeError("METIS found no parts")
    assignment: Array = parts.numpy()
    return assignment


def _partition_with_pymetis(indptr: Array, indices: Array, num_parts: int) -> Array:
    """Calls METIS_PartGraphKway in pymetis' library: its Python function takes several weights of a node for one."""
    import pymetis._internal as library

    metis = ctypes.CDLL(library.__file__)
    num_nodes, assignment = len(indptr) - 1, np.empty(len(indptr) - 1, np.int64)
    types, weights, edge_weights = (_optional(name) for name in ("types", "node_weights", "edge_weights"))
    if types is not None:
        weights = np.ascontiguousarray(types[:, None] == np.unique(types), dtype=np.int64)
    cut = ctypes.c_int64()
    code = metis.METIS_PartGraphKway(
        ctypes.byref(ctypes.c_int64(num_nodes)),
        ctypes.byref(ctypes.c_int64(1 if weights is None else weights.shape[1])),
        _pointer(indptr),
        _pointer(indices),
        None if weights is None else _pointer(weights),
        None,  # sizes of nodes
        None if edge_weights is None else _pointer(edge_weights),
        ctypes.byref(ctypes.c_int64(num_parts)),
        None,  # shares of the parts: equal
        None,  # tolerances: METIS's own
        None,  # options: the defaults
        ctypes.byref(cut),
        _pointer(assignment),
    )
    if code != 1:
        raise RuntimeError(f"METIS ended with {code}")
    return assignment


def _pointer(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    except Exception as error:  # DGL's messages end in a stack trace
        sys.exit(first_line(error))
