"""What a cut does: edges between parts, nodes at a cut edge, skewed labels."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.config.train import ServerMinibatch
from llcg_dist.data import cut
from llcg_dist.data.cut import (
    PartitionQuality,
    correction_nodes,
    cut_edge_counts,
    cut_edge_ends,
    degrees_within_parts,
    edges_between_parts,
    label_skew,
)
from llcg_dist.data.graph import TRAIN, UNUSED
from llcg_dist.errors import UserError
from tests.helpers.edge_lists import edge_lists, neighbour_lists
from tests.helpers.graphs import Edge, graph_of

PATH = graph_of([(i, i + 1) for i in range(9)], 10)
NUM_PARTS = 3


@st.composite
def cut_graphs(draw: st.DrawFn) -> tuple[int, list[Edge], list[int]]:
    """(number of nodes, edges, the part of every node)."""
    n, edges = draw(edge_lists())
    return n, edges, draw(st.lists(st.integers(0, NUM_PARTS - 1), min_size=n, max_size=n))


@given(cut_graphs(), st.integers(1, 50))
def test_counts_at_once_and_in_chunks(drawn: tuple[int, list[Edge], list[int]], entries_per_chunk: int) -> None:
    n, edges, part = drawn
    between = [[0] * NUM_PARTS for _ in range(NUM_PARTS)]
    leaving, inside = [0] * NUM_PARTS, [0] * n
    for node, row in enumerate(neighbour_lists(n, edges)):
        for other in row:
            between[part[node]][part[other]] += 1
        leaving[part[node]] += sum(part[other] != part[node] for other in row)
        inside[node] = sum(part[other] == part[node] for other in row)
    ends = [len(row) > here for row, here in zip(neighbour_lists(n, edges), inside, strict=True)]
    graph, assignment = graph_of(edges, n), np.array(part)
    for at_once in (cut.ENTRIES_PER_CHUNK, entries_per_chunk):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cut, "ENTRIES_PER_CHUNK", at_once)
            assert edges_between_parts(graph, assignment, NUM_PARTS).tolist() == between
            assert cut_edge_counts(graph, assignment, NUM_PARTS).tolist() == leaving
            assert degrees_within_parts(graph, assignment).tolist() == inside
            assert cut_edge_ends(graph, assignment).tolist() == ends


def test_ends_of_cut_edges_by_hand() -> None:
    parts = np.array([0] * 4 + [1] * 6)
    assert np.flatnonzero(cut_edge_ends(PATH, parts)).tolist() == [3, 4]
    assert not cut_edge_ends(PATH, np.zeros(10, int)).any()


def chosen(minibatch: str, split: np.ndarray, parts: np.ndarray) -> list[int] | None:
    found = correction_nodes(ServerMinibatch(minibatch), dataclasses.replace(PATH, split=split), parts)
    return None if found is None else found.tolist()


def test_correction_nodes() -> None:
    parts = np.array([0] * 4 + [1] * 6)
    only_training = np.full(10, TRAIN, np.int8)
    assert chosen("uniform", only_training, parts) is None
    assert chosen("cut_edges", only_training, parts) == [3, 4]
    one = np.array([TRAIN, UNUSED, TRAIN, UNUSED, TRAIN, TRAIN, UNUSED, UNUSED, UNUSED, UNUSED], np.int8)
    assert chosen("cut_edges", one, parts) == [4]
    with pytest.raises(UserError, match="no training node has a cut edge"):
        chosen("cut_edges", only_training, np.zeros(10, int))


def test_label_skew_by_hand() -> None:
    assert label_skew([10, 10], [50, 50]) == 0
    assert label_skew([10, 0, 0], [0, 20, 20]) == 1
    assert label_skew([30, 10], [50, 50]) == pytest.approx(0.25)  # shares 3/4, 1/4 against 1/2, 1/2
    assert label_skew([0, 0], [5, 5]) == pytest.approx(0.5)


def test_quality_of_parts_by_hand() -> None:
    """A path of ten nodes cut once, 6 and 4; training nodes 0 to 4 and 9, of two classes; the rest does not count."""
    split = np.array([TRAIN] * 5 + [UNUSED] * 4 + [TRAIN], np.int8)
    labels = np.array([0, 0, 0, 1, 1, 1, 1, 1, 1, 0])
    graph = dataclasses.replace(PATH, split=split, labels=labels, num_classes=2)
    found = PartitionQuality.of(graph, np.array([0] * 6 + [1] * 4), 2)
    assert found.cut_share == pytest.approx(1 / 9)
    assert found.largest_part == pytest.approx(6 / 5)
    assert found.largest_training_part == pytest.approx(5 / 3)
    assert found.worst_label_skew == pytest.approx(1 / 3)  # part 1 has class 0 alone, where 4 of 6 have it
