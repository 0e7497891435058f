"""Cache of remote feature rows that keeps the most often requested ones within a limit of bytes.

Features never change, so the cache affects traffic and time, never a result. It starts empty, also on resume.
"""

import numpy as np
import torch
from torch import Tensor

from llcg_dist.data.rows import Array
from llcg_dist.data.views import RowSource


class CachedRows:
    """A RowSource in front of another. A cached row is evicted for a row that was requested more often.

    Rows are identified by keys that number the rows of all parts consecutively.
    """

    def __init__(self, source: RowSource, owner: Array, limit_bytes: int) -> None:
        self._source, self._limit_bytes = source, limit_bytes
        part_sizes = np.bincount(owner)
        self._first_key = torch.from_numpy(np.concatenate([[0], np.cumsum(part_sizes)[:-1]]))
        self._requests = torch.zeros(len(owner), dtype=torch.int32)
        self._slot = torch.full((len(owner),), -1, dtype=torch.int64)  # by key; -1: not cached
        self._cached_keys = torch.empty(0, dtype=torch.int64)  # by slot
        self._rows: Tensor | None = None  # by slot; allocated when the first reply shows width and dtype

    def fetch(self, wanted: list[Tensor]) -> list[Tensor]:
        """wanted[q] holds row numbers within part q; only rows that are not cached are requested from the source."""
        keys = [numbers.long() + first for numbers, first in zip(wanted, self._first_key, strict=True)]
        hits = [self._slot[of_part] >= 0 for of_part in keys]
        missing = [numbers[~hit] for numbers, hit in zip(wanted, hits, strict=True)]
        fetched = self._source.fetch(missing)
        if self._rows is None:
            width, row = fetched[0].shape[1], fetched[0].new_empty(0)
            self._rows = row.new_empty(self._limit_bytes // (width * row.element_size()), width)
        rows = [self._merge(*of_part) for of_part in zip(keys, hits, fetched, strict=True)]
        self._requests[torch.cat(keys)] += 1
        self._insert(torch.cat([key[~hit] for key, hit in zip(keys, hits, strict=True)]), torch.cat(fetched))
        return rows

    def _merge(self, keys: Tensor, hit: Tensor, fetched: Tensor) -> Tensor:
        """[len(keys), F]: cached rows where `hit` is true, fetched rows elsewhere."""
        assert self._rows is not None
        rows = fetched.new_empty(len(keys), fetched.shape[1])
        rows[hit] = self._rows[self._slot[keys[hit]]]
        rows[~hit] = fetched
        return rows

    def _insert(self, keys: Tensor, rows: Tensor) -> None:
        """The most requested of the new rows take free slots; the next replace cached rows with fewer requests."""
        assert self._rows is not None
        order = self._requests[keys].argsort(descending=True, stable=True)
        num_cached = len(self._cached_keys)
        free = torch.arange(num_cached, min(len(self._rows), num_cached + len(keys)))
        into_free, rest = order[: len(free)], order[len(free) :]
        self._cached_keys = torch.cat([self._cached_keys, keys[into_free]])
        pairs = min(len(rest), len(self._cached_keys) - len(free))
        least = self._requests[self._cached_keys].topk(pairs, largest=False, sorted=True).indices
        replaced = self._requests[keys[rest[:pairs]]] > self._requests[self._cached_keys[least]]
        self._slot[self._cached_keys[least[replaced]]] = -1
        slots, inserted = torch.cat([free, least[replaced]]), torch.cat([into_free, rest[:pairs][replaced]])
        self._cached_keys[slots] = keys[inserted]
        self._slot[keys[inserted]] = slots
        self._rows[slots] = rows[inserted]
