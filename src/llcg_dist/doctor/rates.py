"""What this host takes for the work that stages are made of: seconds of one core, but for the disk.

probe_partition.py and probe_training.py measure it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class PartitionRates:
    """Of what `llcg partition` does."""

    start: float
    """A process that imports what `llcg` needs, until it begins to work."""
    hash_byte: float
    """A checksum (sha256)."""
    write_byte: float
    """A byte into a file, as far as the kernel's cache."""
    new_page: float
    """What of that is for a page that no process had lately; what sorts edges was measured without."""
    disk_byte: float
    """A byte from there to the disk, by the clock."""
    read_byte: float
    """A byte of rows here and there in a mapped file that is not in memory."""
    read_wait: float
    """What it waits for the disk then, by the clock."""
    page_byte: float
    """A byte of memory that the kernel has to find a page for."""
    draw_number: float
    """A random number, where the graph is generated."""
    scan_value: float
    """Whether a feature is finite."""
    copy_byte: float
    """Rows of features, picked from a mapped file."""
    find_edge: float
    """The nodes at the ends of an edge of the user's, by their ids."""
    add_edge: float
    """An edge, distributed over buckets in both directions."""
    sort_entry: float
    """An entry of a bucket, read, sorted and written; for each bit of the number that are sorted together."""
    check_entry: float
    """An entry of the topology: in range, sorted, once, in both directions."""
    count_entry: float
    """An entry that is looked at to count cut edges."""
    induce_entry: float
    """An entry that is looked at to make the subgraphs of all parts."""
    merge: float
    """stream: an entry in the first pass of label propagation, where every node is a cluster of its own."""
    contract: float
    """stream: an entry while the graph of the clusters is made."""
    restream: float
    """stream: an entry in a pass that balances the parts."""
    metis_entry: float
    """METIS: an entry of its graph."""


@dataclass(frozen=True)
class TrainingRates:
    """Of what ranks do, with the model of the settings."""

    step: float
    """A machine's local step."""
    server_step: float
    """A step of the server's correction."""
    evaluate_node: float
    """A node, in one evaluation."""
    evaluate_entry: float
    """An entry of the topology, in one evaluation."""


@dataclass(frozen=True)
class Rates:
    partition: PartitionRates
    training: TrainingRates
    cores: int
    memory_for_loading: int
    """Bytes of dataset.memory, or what it would be now."""
    free_memory: int
    """Bytes that are free now, or hold what can be read again."""
