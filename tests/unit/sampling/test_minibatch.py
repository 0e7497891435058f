"""Mini-batches drawn ahead are those that would be drawn later, and hold no more memory than they are given."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from llcg_dist.data.feature_rows import LazyRows
from llcg_dist.data.rows import Array
from llcg_dist.data.views import GraphView
from llcg_dist.sampling.minibatch import PREFETCH_BYTES, Batch, BatchStream, Sample, fanouts_per_layer
from llcg_dist.sampling.neighbor import NeighborSampler
from tests.helpers.graphs import community_graph

GRAPH = community_graph()


def batches(round_: int = 1, method: str = "neighbor") -> BatchStream:
    return BatchStream(GraphView(GRAPH), NeighborSampler(GRAPH, [3, 3], method), 16, (5, 2, round_))


def tensors(batch: Batch) -> list[torch.Tensor]:
    """All that is held; of the features that is which rows to read."""
    assert isinstance(batch.features, LazyRows)
    return [batch.features.nodes, batch.labels, *(t for b in batch.blocks for t in (b.indptr, b.indices, b.degree))]


def same(one: Batch, other: Batch) -> bool:
    return all(torch.equal(a, b) for a, b in zip(tensors(one), tensors(other), strict=True))


@pytest.mark.parametrize("method", ["neighbor", "labor"])
@pytest.mark.parametrize("count", [0, 1, 3, 9])
def test_when_a_batch_is_drawn_changes_no_bit(count: int, method: str) -> None:
    late, early = batches(method=method), batches(method=method)
    early.prefetch(count)
    torch.rand(3)
    batches(round_=2).prefetch(2)  # someone else draws in between
    assert early.torch_seed == late.torch_seed
    for _ in range(5):
        assert same(late.next(), early.next())


@pytest.mark.parametrize("method", ["neighbor", "labor"])
@pytest.mark.parametrize("prefetched", [0, 2])
def test_a_second_thread_changes_no_bit_and_draws_no_more_than_is_wanted(prefetched: int, method: str) -> None:
    plain, ahead = batches(method=method), batches(method=method)
    ahead.prefetch(prefetched)
    with ThreadPoolExecutor(1) as thread:
        ahead.draw_ahead(thread, 5)
        for _ in range(5):
            assert same(plain.next(), ahead.next())
        assert not ahead._drawing
    assert same(plain.next(), ahead.next())  # one more than was said


class NotesThreads(NeighborSampler):
    def sample(self, seeds: Array, seed: int) -> Sample:
        THREADS.append(threading.get_ident())
        return super().sample(seeds, seed)


THREADS: list[int] = []


def test_batches_are_drawn_by_the_other_thread_before_they_are_wanted() -> None:
    stream = BatchStream(GraphView(GRAPH), NotesThreads(GRAPH, [3, 3]), 16, (5, 2, 1))
    THREADS.clear()
    with ThreadPoolExecutor(1) as thread:
        other = thread.submit(threading.get_ident).result()
        stream.draw_ahead(thread, 2)
        thread.submit(lambda: None).result()  # what was asked for before is done
        assert [other] == THREADS
        stream.next()
        stream.next()
        assert [other] * 2 == THREADS
    stream.next()  # one more than was said
    assert [other] * 2 + [threading.get_ident()] == THREADS


def test_one_batch_is_always_drawn_and_no_more_than_fit() -> None:
    size = max(batches(round_).next().nbytes for round_ in range(1, 20))
    for max_bytes, fit in ((1, 1), (size - 1, 1), (int(4.5 * size), 4)):
        drawn = batches()
        drawn.prefetch(100, max_bytes)
        held = [batch.nbytes for batch in drawn._prefetched]
        assert len(held) >= fit
        assert sum(held) <= max(max_bytes, held[0])
    drawn = batches()
    drawn.prefetch(100, PREFETCH_BYTES)
    assert len(drawn._prefetched) == 100


def test_bytes_are_those_of_all_that_is_held() -> None:
    batch = batches().next()
    assert batch.nbytes == sum(tensor.element_size() * tensor.numel() for tensor in tensors(batch))


def test_fanouts_per_layer() -> None:
    assert fanouts_per_layer(10, 3) == [10, 10, 10]
    assert fanouts_per_layer([10, 5], 2) == [10, 5]
    assert fanouts_per_layer(10, 0) == []
