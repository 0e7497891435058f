"""Small edge lists drawn by hypothesis, and the neighbours that they stand for."""

from hypothesis import strategies as st

from tests.helpers.graphs import Edge


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[int, list[Edge]]:
    """(number of nodes, edges); duplicates, both directions and self-loops included."""
    n = draw(st.integers(1, 12))
    node = st.integers(0, n - 1)
    return n, draw(st.lists(st.tuples(node, node), max_size=40))


def neighbour_lists(n: int, edges: list[Edge]) -> list[list[int]]:
    """Of every node its sorted neighbours, worked out with sets."""
    found: list[set[int]] = [set() for _ in range(n)]
    for a, b in edges:
        if a != b:
            found[a].add(b)
            found[b].add(a)
    return [sorted(row) for row in found]
