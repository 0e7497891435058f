"""METIS through DGL, the one file that imports DGL to partition."""

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
    """[N] int32: the part of every node, few edges between parts; the same bits for the same graph and seed.

    METIS reseeds itself at every call, so the seed is the order in which it meets the nodes; 0 keeps it as it is.
    """
    with tempfile.TemporaryDirectory(prefix="metis-", dir=scratch) as folder:
        return _metis(graph, num_parts, seed, Path(folder))


def _metis(graph: Graph, num_parts: int, seed: int, folder: Path) -> Array:
    order = np.arange(graph.num_nodes)
    indptr, indices = graph.indptr, graph.indices
    if seed != 0:
        order = np.random.default_rng(np.random.SeedSequence(seed)).permutation(graph.num_nodes)
        indptr, indices = reordered_topology(graph, order)
    for name, array in (("indptr", indptr), ("indices", indices)):
        save_array(folder / f"{name}.npy", array, np.int64)  # DGL's METIS knows no other
    del indptr, indices
    assignment = np.empty(graph.num_nodes, np.int32)
    assignment[order] = _metis_in_its_own_process(folder, num_parts)
    return assignment


def _metis_in_its_own_process(folder: Path, num_parts: int) -> Array:
    """METIS reads stack and heap before it writes them, so its parts would depend on what ran before in the process.

    A process of its own, in which malloc hands out zeros and keeps no old blocks (glibc's perturb and tcache_count) and
    METIS runs on a new thread's untouched stack, gives the same parts every time. And its memory goes with it.
    """
    clean = "glibc.malloc.perturb=255:glibc.malloc.tcache_count=0"
    command = [sys.executable, "-m", __name__, str(folder), str(num_parts)]
    environment = os.environ | {"GLIBC_TUNABLES": clean, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UserError(f"partition=metis: METIS failed ({done.returncode}: {reason}); try partition=random")
    found: Array = np.load(folder / "assignment.npy", allow_pickle=False)
    return found


def _metis_process(folder: str, num_parts: int) -> None:
    """What that process runs.

    Not dgl.metis_partition_assignment: it first makes the graph symmetric, which ours is, and spends most of its memory
    on that. What it calls then takes the topology as it is mapped.
    """
    import dgl
    import torch

    os.chdir(folder)  # METIS keeps the graphs that it has coarsened in files of the folder it runs in
    columns = [torch.from_numpy(np.load(f"{name}.npy", mmap_mode="r")) for name in ("indptr", "indices")]
    no_ids = torch.empty(0, dtype=torch.int64)
    topology = dgl.graph(("csc", (*columns, no_ids)), num_nodes=len(columns[0]) - 1)
    no_weights = dgl.backend.to_dgl_nd(torch.empty(0, dtype=torch.int64))

    def cut() -> Array:
        parts = dgl.partition._CAPI_DGLMetisPartition_Hetero(topology._graph, num_parts, no_weights, "k-way", True)
        found: Array = dgl.utils.toindex(parts).tonumpy()
        return found

    # Larger than any stack that glibc would keep and hand out again.
    threading.stack_size(64 << 20)
    with ThreadPoolExecutor(1) as thread:
        np.save("assignment.npy", thread.submit(cut).result().astype(np.int32))


if __name__ == "__main__":
    try:
        _metis_process(sys.argv[1], int(sys.argv[2]))
    except Exception as error:  # DGL's messages end in a stack trace
        sys.exit((str(error) or type(error).__name__).splitlines()[0])
