"""METIS partitioning through DGL, in a subprocess. No other file of data/ imports DGL."""

import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from llcg_dist.data.atomic_files import save_array
from llcg_dist.data.graph import Graph, reordered_topology
from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError


def metis_parts(graph: Graph, num_parts: int, seed: int, scratch: Path | None = None) -> Array:
    """[N] int32: the part of every node, chosen to cut few edges; deterministic for a graph and a seed.

    METIS reseeds itself at every call, so the seed permutes the nodes before METIS sees them; seed 0 keeps their order.
    Temporary files go to `scratch`, or to the system's folder for them.
    """
    with tempfile.TemporaryDirectory(prefix="metis-", dir=scratch) as folder:
        return _partition_in(Path(folder), graph, num_parts, seed)


def _partition_in(folder: Path, graph: Graph, num_parts: int, seed: int) -> Array:
    order = np.arange(graph.num_nodes)
    indptr, indices = graph.indptr, graph.indices
    if seed != 0:
        order = np.random.default_rng(np.random.SeedSequence(seed)).permutation(graph.num_nodes)
        indptr, indices = reordered_topology(graph, order)
    for name, array in (("indptr", indptr), ("indices", indices)):
        save_array(folder / f"{name}.npy", array, np.int64)  # the only index type that DGL's METIS takes
    del indptr, indices
    assignment = np.empty(graph.num_nodes, np.int32)
    assignment[order] = _run_metis_subprocess(folder, num_parts)
    return assignment


def _run_metis_subprocess(folder: Path, num_parts: int) -> Array:
    """Runs METIS on folder/indptr.npy and indices.npy in a subprocess with a zeroed heap and a fresh stack.

    METIS reads stack and heap memory that it has not written, so its result would depend on what ran before in the
    process. With malloc handing out zeros and reusing no blocks (glibc's perturb and tcache_count), and on a new
    thread's untouched stack, it gives the same parts every time. Its memory is freed with the process.
    """
    zeroed_heap = "glibc.malloc.perturb=255:glibc.malloc.tcache_count=0"
    command = [sys.executable, "-m", __name__, str(folder), str(num_parts)]
    environment = os.environ | {"GLIBC_TUNABLES": zeroed_heap, "OMP_NUM_THREADS": "1"}
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    if process.returncode != 0:
        reason = (process.stderr.strip().splitlines() or ["no message"])[-1]
        raise UserError(f"partition=metis: METIS failed ({process.returncode}: {reason}); try partition=random")
    assignment: Array = np.load(folder / "assignment.npy", allow_pickle=False)
    return assignment


def _metis_main(folder: str, num_parts: int) -> None:
    """The main function of the METIS subprocess; writes assignment.npy.

    dgl.metis_partition_assignment would first make the graph symmetric, which it already is, and spend most of its
    memory on that. The C function that it then calls takes the memory-mapped topology as it is.
    """
    import dgl
    import torch

    os.chdir(folder)  # METIS writes coarsened graphs to files in the current folder
    csc = [torch.from_numpy(np.load(f"{name}.npy", mmap_mode="r")) for name in ("indptr", "indices")]
    no_ids = torch.empty(0, dtype=torch.int64)
    topology = dgl.graph(("csc", (*csc, no_ids)), num_nodes=len(csc[0]) - 1)
    no_weights = dgl.backend.to_dgl_nd(torch.empty(0, dtype=torch.int64))

    def partition() -> Array:
        parts = dgl.partition._CAPI_DGLMetisPartition_Hetero(topology._graph, num_parts, no_weights, "k-way", True)
        assignment: Array = dgl.utils.toindex(parts).tonumpy()
        return assignment

    # Larger than any stack that glibc would cache and reuse.
    threading.stack_size(64 << 20)
    with ThreadPoolExecutor(1) as thread:
        np.save("assignment.npy", thread.submit(partition).result().astype(np.int32))


if __name__ == "__main__":
    try:
        _metis_main(sys.argv[1], int(sys.argv[2]))
    except Exception as error:  # DGL's messages end in a stack trace
        sys.exit((str(error) or type(error).__name__).splitlines()[0])
