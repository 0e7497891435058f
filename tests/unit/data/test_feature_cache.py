"""Remote rows that are asked for again come from the cache."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from llcg_dist.data.feature_cache import CachedRows


class Counting:
    """Rows whose values tell which they are; counts what is asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def fetch(self, wanted: list[Tensor]) -> list[Tensor]:
        self.asked += sum(len(numbers) for numbers in wanted)
        return [numbers[:, None].float() * 10 + part for part, numbers in enumerate(wanted)]


batches = st.lists(st.tuples(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9))), min_size=1, max_size=12)


@given(batches, st.integers(0, 12))
def test_a_cache_answers_as_its_source_and_keeps_its_limit(
    asked: list[tuple[set[int], set[int]]], rows_kept: int
) -> None:
    source = Counting()
    cache = CachedRows(source, np.array([0] * 10 + [1] * 10), limit_bytes=rows_kept * 4 + 3)
    for wanted in asked:
        numbers = [torch.tensor(sorted(of_part), dtype=torch.int32) for of_part in wanted]
        for found, expected in zip(cache.fetch(numbers), Counting().fetch(numbers), strict=True):
            assert torch.equal(found, expected)
    distinct = {(part, n) for wanted in asked for part, of_part in enumerate(wanted) for n in of_part}
    total = sum(len(of_part) for wanted in asked for of_part in wanted)
    assert len(distinct) <= source.asked <= total
    if rows_kept == 0:
        assert source.asked == total


def test_the_most_requested_rows_stay() -> None:
    source = Counting()
    cache = CachedRows(source, np.zeros(10, np.int64), limit_bytes=4)  # one row
    for number, asked in ((1, 1), (1, 0), (2, 1), (1, 0), (3, 1), (1, 0)):
        before = source.asked
        cache.fetch([torch.tensor([number])])
        assert source.asked - before == asked
