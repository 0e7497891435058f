"""Statistics of a partition: cut edges, boundary nodes, degrees within parts, label skew."""

from dataclasses import dataclass

import numpy as np

from llcg_dist.config.train import ServerMinibatch
from llcg_dist.data.csr import row_entries
from llcg_dist.data.graph import TRAIN, Graph
from llcg_dist.data.rows import ENTRIES_PER_CHUNK, Array, row_ranges
from llcg_dist.errors import UserError


def edges_between_parts(graph: Graph, assignment: Array, num_parts: int) -> Array:
    """[P, P]: directed edges from part p to part q. Symmetric; an edge inside a part counts twice."""
    counts = np.zeros(num_parts**2, np.int64)
    for first, last in row_ranges(graph.indptr, ENTRIES_PER_CHUNK):
        row, column = row_entries(graph.indptr, graph.indices, first, last)
        pairs = assignment[row].astype(np.int64) * num_parts + assignment[column]
        counts += np.bincount(pairs, minlength=num_parts**2)
    return counts.reshape(num_parts, num_parts)


def cut_edge_counts(graph: Graph, assignment: Array, num_parts: int) -> Array:
    """[P]: how many edges leave each part; their sum is twice the number of cut edges."""
    between = edges_between_parts(graph, assignment, num_parts)
    return between.sum(axis=1) - between.diagonal()


def cut_edge_ends(graph: Graph, assignment: Array) -> Array:
    """[N] mask of boundary nodes, which have a neighbour in another part."""
    ends = np.zeros(graph.num_nodes, bool)
    for first, last in row_ranges(graph.indptr, ENTRIES_PER_CHUNK):
        row, column = row_entries(graph.indptr, graph.indices, first, last)
        ends[row[assignment[row] != assignment[column]]] = True
    return ends


def degrees_within_parts(graph: Graph, assignment: Array) -> Array:
    """[N] float32: how many neighbours every node has in its own part."""
    degrees = np.zeros(graph.num_nodes, np.float32)
    for first, last in row_ranges(graph.indptr, ENTRIES_PER_CHUNK):
        row, column = row_entries(graph.indptr, graph.indices, first, last)
        inside = row[assignment[row] == assignment[column]]
        degrees[first:last] = np.bincount(inside - first, minlength=last - first)
    return degrees


def correction_nodes(minibatch: ServerMinibatch, graph: Graph, assignment: Array) -> Array | None:
    """Nodes that the server's correction draws its mini-batches from (Figure 9 of the paper compares the two choices).

    `uniform`: None, which stands for all training nodes. `cut_edges`: training nodes that are an end of a cut edge.
    """
    if minibatch == ServerMinibatch.uniform:
        return None
    ends = cut_edge_ends(graph, assignment)
    nodes = np.flatnonzero(ends & (graph.split == TRAIN))
    if len(nodes) == 0:
        raise UserError("sampling.server_minibatch=cut_edges: no training node has a cut edge; use uniform")
    return nodes


def label_skew(part_counts: list[int], all_counts: list[int]) -> float:
    """Total variation distance between a part's label shares and the full graph's: 0 equal, 1 disjoint."""
    part, overall = np.array(part_counts, float), np.array(all_counts, float)
    return float(np.abs(part / max(part.sum(), 1) - overall / max(overall.sum(), 1)).sum() / 2)


@dataclass(frozen=True)
class PartitionQuality:
    """How good parts are to train on, as fractions."""

    cut_share: float
    """Of the edges."""
    largest_part: float
    """Its nodes, where the mean is 1."""
    largest_training_part: float
    """Its training nodes, where the mean is 1."""
    worst_label_skew: float
    """Of the training labels."""

    @classmethod
    def of(cls, graph: Graph, assignment: Array, num_parts: int) -> "PartitionQuality":
        cut = cut_edge_counts(graph, assignment, num_parts).sum() / 2 / max(1, graph.num_edges)
        training = graph.split == TRAIN
        nodes = np.bincount(assignment, minlength=num_parts)
        training_nodes = np.bincount(assignment[training], minlength=num_parts)
        everyone = _label_counts(graph, training)
        parts = (_label_counts(graph, training & (assignment == part)) for part in range(num_parts))
        skew = max(label_skew(counts, everyone) for counts in parts)
        return cls(float(cut), nodes.max() / nodes.mean(), training_nodes.max() / max(1, training_nodes.mean()), skew)


def _label_counts(graph: Graph, nodes: Array) -> list[int]:
    if graph.task == "multilabel":
        return graph.labels[nodes].sum(axis=0).tolist()
    return np.bincount(graph.labels[nodes], minlength=graph.num_classes).tolist()
