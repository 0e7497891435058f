"""Compiled kernels of partition=stream. data/stream.py calls them, and keeps the compiled code in a cache.

They walk over a topology that may be mapped from a file, and hold a few numbers for every node. What is walked over are
units: single nodes at first, then the clusters that those were merged into. Units are visited in the order that the
caller gives, so that the same order and key give the same bits.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from llcg_dist.data.rows import Array

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_AT_ONCE = 1024
"""Neighbours that are gathered at a time."""

# Without the lock of the interpreter; not `parallel`: its threads survive no fork, and their order would change bits.
_compile = njit(cache=True, nogil=True)
_inline = njit(inline="always")


class Units(NamedTuple):
    """Groups of nodes over a topology: unit u has the nodes members[starts[u]:starts[u+1]]."""

    indptr: Array
    indices: Array
    starts: Array
    members: Array
    inner: Array
    """[U] entries of the topology that lead from a unit to itself."""


class Clusters(NamedTuple):
    """Which cluster each node is in, with all of its unit; clusters have the numbers of units."""

    of_node: Array
    tally: Array
    """[U, 2] nodes of every cluster; and, zeros between two units, entries that lead from the unit to it. Side by side:
    what is looked up for a cluster is then one place in memory, which for large graphs is far away."""
    touched: Array
    """[U] the clusters that they lead to."""
    waiting: Array
    """[U + 1] a cluster of one unit whose favourite is this cluster, which is full; -1 where there is none."""


@_inline
def _tie(key: Any, unit: Any, cluster: Any) -> Any:
    """Which of two clusters a unit takes where both have as many of its edges: splitmix64's finaliser."""
    bits = key ^ (np.uint64(cluster) * _GOLDEN) ^ np.uint64(unit)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@_inline
def _weigh(units: Any, unit: Any, of_node: Array, weight: Array, touched: Array, gathered: Array) -> Any:
    """Counts the entries that lead from a unit to every cluster; returns how many clusters these are.

    The clusters of many neighbours are gathered first: the processor then waits for several of them at once, not for
    one after the other.
    """
    count = 0
    for member in range(units.starts[unit], units.starts[unit + 1]):
        node = units.members[member]
        first, last = units.indptr[node], units.indptr[node + 1]
        while first < last:
            entries = min(last - first, len(gathered))
            for entry in range(entries):
                gathered[entry] = of_node[units.indices[first + entry]]
            for entry in range(entries):
                cluster = gathered[entry]
                if weight[cluster] == 0:
                    touched[count] = cluster
                    count += 1
                weight[cluster] += 1
            first += entries
    return count


@_compile
def merge_units(units: Any, clusters: Any, order: Array, limit: int, key: Any, pair: bool) -> int:
    """One pass of label propagation: each unit joins the cluster that most of its edges lead to and that has room for
    it, up to `limit` nodes; returns how many moved.

    With `pair`, a unit that stays alone because its favourite is full (or that has no edge at all) joins another one in
    the same situation: the leaves of a hub.
    """
    of_node, tally, touched, waiting = clusters
    size, weight = tally[:, 0], tally[:, 1]
    gathered = np.empty(_AT_ONCE, of_node.dtype)
    moved = 0
    for unit in order:
        first, last = units.starts[unit], units.starts[unit + 1]
        nodes, own = last - first, of_node[units.members[first]]
        count = _weigh(units, unit, of_node, weight, touched, gathered)
        weight[own] -= units.inner[unit]
        best, most, tie = own, weight[own], _tie(key, unit, own)
        favourite, favour = len(size), 0
        for position in range(count):
            cluster = touched[position]
            edges = weight[cluster]
            weight[cluster] = 0
            if edges > favour:
                favourite, favour = cluster, edges
            if edges >= most and cluster != own and size[cluster] + nodes <= limit:
                drawn = _tie(key, unit, cluster)
                if edges > most or drawn > tie:
                    best, most, tie = cluster, edges, drawn
        if pair and best == own and size[own] == nodes and favourite != own:
            partner = waiting[favourite]
            if partner >= 0 and size[partner] + nodes <= limit:
                best = partner
            else:
                waiting[favourite] = own
        if best != own:
            size[own] -= nodes
            size[best] += nodes
            of_node[units.members[first:last]] = best
            moved += 1
    return moved


@_compile
def group_nodes(of_node: Array, starts: Array, members: Array) -> None:
    """Fills starts [U + 1] and members [N] of the units of all nodes, whose order is kept (a counting sort)."""
    starts[:] = 0
    for node in range(len(of_node)):
        starts[of_node[node] + 1] += 1
    for unit in range(len(starts) - 1):
        starts[unit + 1] += starts[unit]
    for node in range(len(of_node)):  # each start moves to its end ...
        unit = of_node[node]
        members[starts[unit]] = node
        starts[unit] += 1
    for unit in range(len(starts) - 1, 0, -1):  # ... which is where the next one starts
        starts[unit] = starts[unit - 1]
    starts[0] = 0


@_compile
def contract(units: Any, of_node: Array, indptr: Array, indices: Array, weights: Array) -> int:
    """Fills the graph of the units, with the number of edges between two of them as a weight, and units.inner; returns
    how many entries it has. Where that is more than `indices` has room for, the graph means nothing."""
    num_units = len(units.starts) - 1
    weight, touched = np.zeros(num_units, np.int64), np.empty(num_units, np.int64)
    gathered = np.empty(_AT_ONCE, of_node.dtype)
    filled = 0
    indptr[0] = 0
    for unit in range(num_units):
        count = _weigh(units, unit, of_node, weight, touched, gathered)
        units.inner[unit], weight[unit] = weight[unit], 0
        for position in range(count):
            other = touched[position]
            if other != unit:
                if filled < len(indices):
                    indices[filled], weights[filled] = other, weight[other]
                filled += 1
            weight[other] = 0
        indptr[unit + 1] = filled
    return filled


@_compile
def restream(
    indptr: Array, indices: Array, order: Array, part: Array, types: Array, load: Array, room: Array, loss: float
) -> int:
    """Every node again takes the part that most of its neighbours are in and that has room for it; returns how many
    moved. Of parts with as many, it takes a clearly smaller one.

    types [N]; load [P, types]: nodes of each type in every part; room [types]: how many a part may have. Out of a part
    that has more, nodes also go where they have fewer neighbours, by up to the share `loss` of them.
    """
    moved = 0
    neighbours = np.zeros(len(load), np.int64)
    for node in order:
        neighbours[:] = 0
        for edge in range(indptr[node], indptr[node + 1]):
            neighbours[part[indices[edge]]] += 1
        own, kind = part[node], types[node]
        best, most, smallest = own, neighbours[own], load[own, kind] - 1
        crowded = load[own, kind] > room[kind]
        if crowded:
            most = np.int64(np.ceil(most - loss * (indptr[node + 1] - indptr[node]))) - 1
        for other in range(len(load)):
            if other != own and load[other, kind] < room[kind]:
                better = neighbours[other] > most
                if better or neighbours[other] == most and load[other, kind] < smallest:
                    best, most, smallest = other, neighbours[other], load[other, kind]
        if best != own:
            load[own, kind] -= 1
            load[best, kind] += 1
            part[node] = best
            moved += 1
    return moved
