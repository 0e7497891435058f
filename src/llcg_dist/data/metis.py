"""METIS behind one interface: DGL's or pymetis', each in a process of its own (metis_process.py)."""

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from llcg_dist.config.partition import PartitionBackend
from llcg_dist.data.atomic_files import save_array
from llcg_dist.data.graph import Graph, reordered_topology
from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError

_MEMORY = {"dgl": (370_000_000, 73), "pymetis": (0, 136)}
"""Bytes of a METIS process, and bytes more for each entry of the topology: measured on graphs of up to 124 million
entries (bench.metis_memory). DGL's keeps coarsened graphs on disk."""


@dataclass(frozen=True)
class WeightedGraph:
    """A topology in CSR form with weights, all int64: the graph of clusters of nodes."""

    indptr: Array
    indices: Array
    edge_weights: Array
    """One for each of `indices`."""
    node_weights: Array
    """[N, types]: nodes of each type in every cluster; parts shall have equal shares of each."""


@dataclass(frozen=True)
class Metis:
    """One of the two libraries that contain METIS."""

    name: str

    @property
    def version(self) -> str:
        return f"{self.name} {importlib.metadata.version(self.name)}"

    def memory(self, num_entries: int) -> int:
        """Bytes that it needs for a topology of so many entries, with its process; the topology itself is mapped."""
        process, of_entry = _MEMORY[self.name]
        return process + of_entry * num_entries

    def parts(
        self, graph: Graph, num_parts: int, seed: int, types: Array | None = None, scratch: Path | None = None
    ) -> Array:
        """[N] int32: the part of every node, chosen to cut few edges; deterministic for a graph and a seed.

        Parts have equal numbers of nodes, and of nodes of each type where `types` [N] is given. METIS reseeds itself at
        every call, so the seed permutes the nodes before METIS sees them; seed 0 keeps their order. Temporary files go
        to `scratch`, or to the system's folder for them.
        """
        with tempfile.TemporaryDirectory(prefix="metis-", dir=scratch) as folder:
            order = _write_topology(Path(folder), graph, seed)
            if types is not None:
                np.save(Path(folder) / "types.npy", types[order])
            assignment = np.empty(graph.num_nodes, np.int32)
            assignment[order] = self._run(Path(folder), num_parts)
        return assignment

    def parts_of_weighted(self, graph: WeightedGraph, num_parts: int, scratch: Path | None = None) -> Array:
        """[N] int32: the part of every node of a graph with weights, which DGL's METIS does not take."""
        with tempfile.TemporaryDirectory(prefix="metis-", dir=scratch) as folder:
            for name in ("indptr", "indices", "edge_weights", "node_weights"):
                np.save(Path(folder) / f"{name}.npy", getattr(graph, name))
            return self._run(Path(folder), num_parts)

    def _run(self, folder: Path, num_parts: int) -> Array:
        """Runs METIS in a subprocess with a zeroed heap and a fresh stack.

        METIS reads stack and heap memory that it has not written, so its result would depend on what ran before in the
        process. With malloc handing out zeros and reusing no blocks (glibc's perturb and tcache_count), and on a new
        thread's untouched stack, it gives the same parts every time. Its memory is freed with the process.
        """
        zeroed_heap = "glibc.malloc.perturb=255:glibc.malloc.tcache_count=0"
        command = [sys.executable, "-m", "llcg_dist.data.metis_process", self.name, str(folder), str(num_parts)]
        environment = os.environ | {"GLIBC_TUNABLES": zeroed_heap, "OMP_NUM_THREADS": "1"}
        process = subprocess.run(command, env=environment, capture_output=True, text=True)
        if process.returncode != 0:
            reason = (process.stderr.strip().splitlines() or ["no message"])[-1]
            raise UserError(
                f"partition: METIS of {self.name} failed ({process.returncode}: {reason}); try partition=stream"
            )
        assignment: Array = np.load(folder / "assignment.npy", allow_pickle=False)
        return assignment


def choose_metis(requested: PartitionBackend) -> Metis:
    """partition.backend: auto takes DGL where it is installed."""
    installed = [name for name in ("dgl", "pymetis") if importlib.util.find_spec(name)]
    wanted = installed[:1] if requested == PartitionBackend.auto else [str(requested)]
    if not wanted or wanted[0] not in installed:
        there = ", ".join(installed) or "neither dgl nor pymetis"
        raise UserError(
            f"partition.backend={requested}: not installed here (there is {there}); or use partition=random"
        )
    return Metis(wanted[0])


def _write_topology(folder: Path, graph: Graph, seed: int) -> Array:
    """Writes indptr.npy and indices.npy, permuted by the seed; returns the node of every row."""
    order = np.arange(graph.num_nodes)
    indptr, indices = graph.indptr, graph.indices
    if seed != 0:
        order = np.random.default_rng(np.random.SeedSequence(seed)).permutation(graph.num_nodes)
        indptr, indices = reordered_topology(graph, order)
    for name, array in (("indptr", indptr), ("indices", indices)):
        save_array(folder / f"{name}.npy", array, np.int64)  # METIS's own type in both libraries
    return order
