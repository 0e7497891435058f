"""Compiled kernels of neighbour sampling. Import them through compiled.py, which keeps the compiled code in a cache.

Random numbers come from a counter-based generator, a hash of (batch seed, layer, node, counter). So what is drawn for a
node depends on nothing else: not on threads, on the order of the nodes or on what else is in the batch.
"""

from typing import Any

import numpy as np
from numba import njit

from llcg_dist.data.rows import Array

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_INT32_MAX = 2**31 - 1
_FEW_CANDIDATES = 64
_ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)
_FEW = 48
"""Up to so many neighbours are drawn by Floyd's algorithm, which looks through those drawn before; more in one pass."""

# Without the lock of the interpreter, so that a second thread can draw; not `parallel`: its threads survive no fork.
_compile = njit(cache=True, nogil=True)
_inline = njit(inline="always")


@_inline
def _mix(bits: Any) -> Any:
    """splitmix64's finaliser, a bijection of 64 bits in which every bit of the result depends on every bit given."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@_inline
def _number(layer_key: Any, node: Any) -> Any:
    """64 random bits of a node in a layer; different nodes have different numbers."""
    return _mix(layer_key ^ (np.uint64(node) * _GOLDEN))


@_inline
def _below(limit: Any, key: Any, counter: Any) -> Any:
    """The counter's uniform integer in 0..limit-1."""
    bits = _mix(key + np.uint64(counter + 1) * _GOLDEN)
    return np.int64(np.float64(bits >> np.uint64(11)) * (limit / 9007199254740992.0))


@_inline
def _layer_key(seed: Any, layer: Any) -> Any:
    return _mix(_mix(np.uint64(seed)) + np.uint64(layer + 1) * _GOLDEN)


@_compile
def sample_layer(
    indptr: Array,
    indices: Array,
    nodes: Array,
    first: int,
    place: Array,
    fanout: int,
    share: float,
    labor: bool,
    seed: int,
    layer: int,
) -> tuple[Array, Array, Array]:
    """(indptr, indices, nodes): the block of sampled neighbours of nodes[first:], and the nodes with those it reads
    besides.

    `fanout` neighbours of each node (-1: all), or the share `share` of them where that is positive. place [N] int32:
    where a node stands in `nodes`, or -1; kept up to date.
    """
    num_src, key = len(nodes), _layer_key(seed, layer)
    rows = nodes[first:]
    block_indptr = np.empty(len(rows) + 1, np.int32)
    num_edges, most = _count_edges(indptr, rows, fanout, share, block_indptr)
    block_indices = np.empty(num_edges, np.int32)
    read = np.empty(min(len(indptr) - 1, num_src + num_edges), nodes.dtype)
    read[:num_src] = nodes
    chosen, numbers = np.empty(most + 1, np.int32), np.empty(most, np.uint64)
    for row in range(len(rows)):
        neighbours = indices[indptr[rows[row]] : indptr[rows[row] + 1]]
        begin, wanted = block_indptr[row], block_indptr[row + 1] - block_indptr[row]
        _choose(neighbours, wanted, labor, key, rows[row], numbers, chosen)
        for position in range(wanted):
            node = neighbours[chosen[position]]
            if place[node] < 0:
                place[node] = num_src
                read[num_src] = node
                num_src += 1
            block_indices[begin + position] = place[node]
    return block_indptr, block_indices, read[:num_src].copy()


@_compile
def _count_edges(indptr: Array, nodes: Array, fanout: int, share: float, block_indptr: Array) -> tuple[Any, Any]:
    """Fills the block's indptr; returns the number of its edges, and the largest degree."""
    num_edges = largest = np.int64(0)
    block_indptr[0] = 0
    for row in range(len(nodes)):
        degree = np.int64(indptr[nodes[row] + 1] - indptr[nodes[row]])
        wanted = degree
        if share > 0:
            wanted = min(degree, np.int64(np.ceil(share * degree)))
        elif fanout >= 0:
            wanted = min(degree, np.int64(fanout))
        num_edges, largest = num_edges + wanted, max(largest, degree)
        if num_edges > _INT32_MAX:
            raise OverflowError("a batch of more than 2^31 edges; lower the batch size or the fan-out")
        block_indptr[row + 1] = num_edges
    return num_edges, largest


@_inline
def _choose(neighbours: Array, wanted: Any, labor: Any, key: Any, node: Any, numbers: Array, chosen: Array) -> None:
    """Positions of the `wanted` neighbours that are drawn for a node, in the first places of `chosen`."""
    if wanted == len(neighbours):
        for position in range(wanted):
            chosen[position] = position
    elif labor:
        _smallest(neighbours, wanted, key, numbers, chosen)
    else:
        _uniform(len(neighbours), wanted, _number(key, node), chosen)


@_compile
def _uniform(degree: int, wanted: int, key: Any, chosen: Array) -> None:
    """`wanted` different numbers of 0..degree-1, every set of them with the same probability."""
    if wanted <= _FEW:  # Floyd
        for count in range(wanted):
            last = degree - wanted + count
            drawn = _below(last + 1, key, count)
            for earlier in range(count):
                if chosen[earlier] == drawn:
                    drawn = last
                    break
            chosen[count] = drawn
        return
    count = 0
    for position in range(degree):  # Knuth's algorithm S
        if _below(degree - position, key, position) < wanted - count:
            chosen[count] = position
            count += 1


@_compile
def _smallest(neighbours: Array, wanted: int, key: Any, numbers: Array, chosen: Array) -> None:
    """Positions of the `wanted` neighbours with the smallest numbers, in the first places of `chosen`."""
    degree = len(neighbours)
    for position in range(degree):
        numbers[position] = _number(key, neighbours[position])
    # About so many numbers lie below the limit; rarely fewer than wanted, and then all are candidates.
    likely = (wanted + 2.0 * np.sqrt(wanted)) / degree
    limit = np.uint64(likely * 18446744073709549568.0) if likely < 1 else _ALL_BITS
    count = _candidates(numbers, degree, limit, chosen)
    if count < wanted:
        count = _candidates(numbers, degree, _ALL_BITS, chosen)
    for position in range(count):  # to the front; never past what is still to be read
        numbers[position] = numbers[chosen[position]]
    if count <= _FEW_CANDIDATES:
        _keep_ranks_below(wanted, numbers[:count], chosen)
    else:
        _select(wanted, count, numbers, chosen)


@_inline
def _candidates(numbers: Array, size: Any, limit: Any, chosen: Array) -> Any:
    """Positions of the numbers up to the limit, in order; returns how many. Without a branch that would be guessed."""
    count = 0
    for position in range(size):
        chosen[count] = position
        count += numbers[position] <= limit
    return count


@_compile
def _keep_ranks_below(wanted: int, numbers: Array, chosen: Array) -> None:
    """Keeps of `chosen` those with the `wanted` smallest numbers, in order: compares each with each, as vectors."""
    kept = 0
    for one in range(len(numbers)):
        rank = 0
        for other in range(len(numbers)):
            rank += numbers[other] < numbers[one]
        chosen[kept] = chosen[one]
        kept += rank < wanted


@_compile
def _select(wanted: int, count: int, numbers: Array, chosen: Array) -> None:
    """Brings those of `chosen` with the `wanted` smallest numbers to the front (Hoare's quickselect)."""
    low, high = 0, count - 1
    while low < high:
        pivot = numbers[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while numbers[left] < pivot:
                left += 1
            while numbers[right] > pivot:
                right -= 1
            if left <= right:
                numbers[left], numbers[right] = numbers[right], numbers[left]
                chosen[left], chosen[right] = chosen[right], chosen[left]
                left += 1
                right -= 1
        if wanted - 1 <= right:
            high = right
        elif wanted - 1 >= left:
            low = left
        else:
            return


@_compile
def set_places(nodes: Array, place: Array, value: int) -> None:
    """Nodes take places value, value + 1, ...; all of them -1 where value is -1."""
    for position in range(len(nodes)):
        place[nodes[position]] = value + position if value >= 0 else -1
