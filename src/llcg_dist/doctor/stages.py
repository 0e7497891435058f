"""Predicts time, memory and disk of every stage of `llcg partition`, before it begins.

Pure functions of the graph's sizes, the settings and what this host takes for a unit of work (rates.py). Each follows
the code of its stage: what is held for a node, an edge, an entry or a chunk, and how often each is looked at. Numbers
of bytes are those of the arrays there. Constants that no code tells (what imports take) were measured on one host.
"""

import math
from dataclasses import dataclass

from llcg_dist.config.partition import NodeOrder, PartitionBackend, PartitionConfig, PartitionMethod
from llcg_dist.data.metis import choose_metis
from llcg_dist.data.rows import ENTRIES_PER_CHUNK
from llcg_dist.data.stream import MOST_ENTRIES
from llcg_dist.doctor.rates import PartitionRates, Rates
from llcg_dist.doctor.sizes import GraphSize

INGEST, WRITE, CUT = "ingest", "write the whole graph", "cut"
COUNT, PARTS = "count cut edges", "write the parts"

LIBRARIES_MAPPED = 70_000_000
"""Pages of libraries that a process of `llcg` has mapped."""
_PROCESS, _TABLES_IMPORTED = 180_000_000, 50_000_000
"""Memory of `llcg partition`, and of pandas, with which it reads files."""
_KERNELS = 25_000_000
"""numba, and the kernels of partition=stream."""
_METIS_PROCESS = 40_000_000
_VALUES_PER_CHUNK = 1 << 24
"""Features that are copied or converted at a time (data/rows.py)."""
_BYTES_OF_EDGE, _BYTES_OF_TEXT_EDGE, _BYTES_OF_SORTED = 80, 256, 40
"""What data/external_csr.py and data/datasets/edge_files.py reckon for an edge that is distributed, one that is read,
and an entry that is sorted."""
_DRAWN_FOR_EDGE = 12
"""What drawing an edge takes, with what is looked up for it, in terms of a random number."""
KEPT_EDGES = 0.8
"""The share of the edges inside of parts; how many are cut is known only afterwards."""
_MERGED_AT_ONCE = 60_000_000
"""stream: entries of a topology whose clusters are few after six passes; those of larger ones are merged once more. In
generated graphs with communities: 31 million are, 124 million are not."""
_COARSE_ENTRIES = 0.015
"""stream: entries of the graph of clusters, for each of the topology's; after a second time there are hardly any."""
_EXIT = 0.6
"""Python ends: in terms of what it took to begin."""
_TABLES = 0.2
"""pandas is imported, in the same terms."""
_LOAD_KERNELS = 0.3
_START_METIS = 0.15


@dataclass(frozen=True)
class StageCost:
    """What a stage will take."""

    cpu: float
    """Seconds of one core."""
    anonymous: int
    """Bytes of memory that it holds at the most, of all its processes; these must be there."""
    mapped: int
    """Bytes of mapped files that it reads; where memory is short the kernel takes their pages back."""
    disk: int = 0
    """Bytes that partition.root holds at the most while it runs, with what is removed again."""
    waits: float = 0.0
    """Seconds that it waits for the disk."""
    cores: float = 1.0
    """Cores that it can keep busy."""

    @property
    def seconds(self) -> float:
        """By the clock, on a host that does nothing else."""
        return self.cpu / self.cores + self.waits

    @property
    def memory(self) -> int:
        return self.anonymous + self.mapped


def partition_stages(size: GraphSize, config: PartitionConfig, num_parts: int, rates: Rates) -> dict[str, StageCost]:
    """{stage: cost} of `llcg partition`, in their order. `config` names a method, not auto."""
    return {
        INGEST: ingest(size, rates),
        WRITE: write_whole(size, rates.partition),
        CUT: cut(size, config, rates.partition),
        COUNT: count_cut_edges(size, rates.partition),
        PARTS: write_parts(size, num_parts, rates.partition),
    }


def ingest(size: GraphSize, rates: Rates) -> StageCost:
    """Reads the user's files, sorts the edges on disk, and checks the graph."""
    memory, speed = rates.memory_for_loading, rates.partition
    piece = min(size.edges, max(1, memory // _BYTES_OF_TEXT_EDGE))
    distributed = 16 * piece + 34 * min(piece, max(1, memory // _BYTES_OF_EDGE))
    together = entries_sorted_together(size.entries, memory)
    sorted_ = 34 * together + 8 * size.nodes
    checked = 34 * min(size.entries, ENTRIES_PER_CHUNK)
    labels = 56 * size.nodes
    features = size.values * size.value_bytes
    converts = size.stored_bytes != size.value_bytes
    written = size.values * size.stored_bytes if size.is_written or converts else 0
    cpu = (
        (0.0 if size.is_drawn else _TABLES * speed.start + size.edges * speed.find_edge)
        + size.file_bytes * speed.hash_byte
        + (3 if converts else 2) * size.values * speed.scan_value
        + written * speed.write_byte
        + size.edges * speed.add_edge
        + (8 * size.entries + size.topology_bytes) * speed.new_page
        + size.entries * (speed.sort_entry * math.log2(together + 2) + speed.check_entry)
    )
    held = max(distributed, sorted_, checked, labels)
    mapped = features + max(size.edge_bytes, size.topology_bytes) + LIBRARIES_MAPPED
    buckets = 8 * size.entries
    waits = 0.0
    if _process(size) + held + mapped + buckets > rates.free_memory:  # what is read comes from the disk
        read = buckets + 2 * size.file_bytes  # for their checksums, and for what is in them
        cpu, waits = cpu + read * speed.read_byte, read * speed.read_wait
    disk = max(buckets, size.topology_bytes) + written
    if size.is_drawn:  # both ends and the class of an edge are drawn one after the other, and kept until it is whole
        cpu += speed.draw_number * (_DRAWN_FOR_EDGE * size.edges + size.values)
        disk = max((8 * 2 + 9) * size.edges, size.topology_bytes + written)
    return StageCost(cpu, _process(size) + held, mapped, disk, waits)


def _process(size: GraphSize) -> int:
    return _PROCESS + (0 if size.is_drawn else _TABLES_IMPORTED)


def entries_sorted_together(entries: int, memory: int) -> int:
    """The size of a bucket (data/external_csr.py)."""
    at_once = max(1, memory // _BYTES_OF_SORTED)
    return max(1, entries // (2 * entries // at_once + 1))


def write_whole(size: GraphSize, speed: PartitionRates) -> StageCost:
    """Copies what is not in the store's folder yet, and makes checksums of all arrays."""
    there = size.is_written or size.stored_bytes != size.value_bytes
    copied = 9 * size.nodes + (0 if there else size.values * size.stored_bytes)
    hashed = size.whole_bytes - 4 * size.nodes
    cpu = copied * speed.write_byte + hashed * speed.hash_byte
    mapped = size.values * size.value_bytes + size.topology_bytes + LIBRARIES_MAPPED
    return StageCost(cpu, _process(size) + 10 * size.nodes, mapped, hashed)


def cut(size: GraphSize, config: PartitionConfig, speed: PartitionRates) -> StageCost:
    if config.method == PartitionMethod.stream:
        cost = cut_by_stream(size, speed)
    elif config.method in (PartitionMethod.metis, PartitionMethod.clusters):
        cost = cut_by_metis(size, config.backend, speed)
    else:
        held = _process(size) + 24 * size.nodes
        cost = StageCost(size.nodes * speed.check_entry, held, LIBRARIES_MAPPED, size.whole_bytes)
    if config.order == NodeOrder.given:
        return cost
    bytes_ = size.values * size.stored_bytes
    cpu = size.entries * (speed.induce_entry + speed.sort_entry * math.log2(ENTRIES_PER_CHUNK))
    cpu += bytes_ * (speed.copy_byte + speed.write_byte) + size.whole_bytes * speed.hash_byte
    held = _process(size) + 40 * size.nodes + 34 * min(size.entries, ENTRIES_PER_CHUNK)
    mapped = max(cost.mapped, size.whole_bytes + LIBRARIES_MAPPED)
    disk = size.whole_bytes + max(bytes_, size.topology_bytes)
    return StageCost(cost.cpu + cpu, max(cost.anonymous, held), mapped, disk)


def cut_by_stream(size: GraphSize, speed: PartitionRates) -> StageCost:
    """Six passes of label propagation, twice where clusters are still many, their graph, METIS, and restreaming; how
    much later passes take of the first was timed once, on graphs of 1/4, one and four times ogbn-products' size."""
    twice = size.entries > _MERGED_AT_ONCE
    of_entry = (4.9 + 4.1 * twice) * speed.merge + 3.5 * speed.contract + 2 * speed.restream
    coarse = 0 if twice else round(_COARSE_ENTRIES * size.entries)
    cpu = size.entries * of_entry + coarse * speed.metis_entry + (_LOAD_KERNELS + _START_METIS) * speed.start
    merging = 7 * size.index_bytes * size.nodes
    cutting = 4 * size.index_bytes * size.nodes + (16 * MOST_ENTRIES if twice else _METIS_PROCESS + 54 * coarse)
    held = _process(size) + _KERNELS + max(merging, cutting)
    return StageCost(cpu, held, size.topology_bytes + LIBRARIES_MAPPED, size.whole_bytes)


def cut_by_metis(size: GraphSize, backend: PartitionBackend, speed: PartitionRates) -> StageCost:
    """METIS gets the topology with 8 bytes an index, mapped from temporary files."""
    mapped = 8 * (size.entries + size.nodes)
    cpu = size.entries * speed.metis_entry + 2 * speed.start
    held = choose_metis(backend).memory(size.entries)
    disk = size.whole_bytes + 4 * size.topology_bytes
    return StageCost(cpu, _process(size) + held, mapped + LIBRARIES_MAPPED, disk)


def count_cut_edges(size: GraphSize, speed: PartitionRates) -> StageCost:
    held = 12 * size.nodes + 44 * min(size.entries, ENTRIES_PER_CHUNK)
    mapped = size.topology_bytes + LIBRARIES_MAPPED
    return StageCost(size.entries * speed.count_entry, _process(size) + held, mapped, size.whole_bytes)


def write_parts(size: GraphSize, num_parts: int, speed: PartitionRates) -> StageCost:
    """One part after the other: its subgraph is made in memory, features are copied in chunks; then all is synced."""
    features, entries = size.values * size.stored_bytes, size.entries // num_parts
    parts = num_parts * size.part_bytes(num_parts, KEPT_EDGES)
    chunk = min(features // num_parts, _VALUES_PER_CHUNK * size.stored_bytes)
    held = 20 * size.nodes + 44 * min(entries, ENTRIES_PER_CHUNK) + 2 * size.index_bytes * entries + chunk
    cpu = (
        _EXIT * speed.start
        + size.entries * speed.induce_entry
        + features * speed.copy_byte
        + parts * (speed.write_byte + speed.hash_byte)
        + size.file_bytes * speed.hash_byte
    )
    mapped, disk = features + size.topology_bytes + LIBRARIES_MAPPED, size.whole_bytes + parts
    return StageCost(cpu, _process(size) + held, mapped, disk, waits=disk * speed.disk_byte)
