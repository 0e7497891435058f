"""Keeps the remote feature rows that were asked for most often, within a limit of bytes.

Features never change, so a cache changes bytes and time, never a result. It starts empty, also when a run is resumed.
"""

import numpy as np
import torch
from torch import Tensor

from llcg_dist.data.rows import Array
from llcg_dist.data.views import RowSource


class CachedRows:
    """A source of rows in front of another. A row stays as long as no other was asked for more often."""

    def __init__(self, source: RowSource, owner: Array, limit: int) -> None:
        self._source, self._limit = source, limit
        sizes = np.bincount(owner)
        self._first = torch.from_numpy(np.concatenate([[0], np.cumsum(sizes)[:-1]]))
        self._asked = torch.zeros(len(owner), dtype=torch.int32)
        self._slot = torch.full((len(owner),), -1, dtype=torch.int64)
        self._kept = torch.empty(0, dtype=torch.int64)  # by slot: the row that it holds, numbered through all parts
        self._rows: Tensor | None = None

    def fetch(self, wanted: list[Tensor]) -> list[Tensor]:
        keys = [numbers.long() + first for numbers, first in zip(wanted, self._first, strict=True)]
        hits = [self._slot[of_part] >= 0 for of_part in keys]
        missing = [numbers[~hit] for numbers, hit in zip(wanted, hits, strict=True)]
        fetched = self._source.fetch(missing)
        if self._rows is None:
            width, row = fetched[0].shape[1], fetched[0].new_empty(0)
            self._rows = row.new_empty(self._limit // (width * row.element_size()), width)
        found = [self._joined(*of_part) for of_part in zip(keys, hits, fetched, strict=True)]
        self._asked[torch.cat(keys)] += 1
        self._admit(torch.cat([key[~hit] for key, hit in zip(keys, hits, strict=True)]), torch.cat(fetched))
        return found

    def _joined(self, keys: Tensor, hit: Tensor, fetched: Tensor) -> Tensor:
        assert self._rows is not None
        rows = fetched.new_empty(len(keys), fetched.shape[1])
        rows[hit] = self._rows[self._slot[keys[hit]]]
        rows[~hit] = fetched
        return rows

    def _admit(self, keys: Tensor, rows: Tensor) -> None:
        """The most requested newcomers take free slots, then those of the least requested."""
        assert self._rows is not None
        order = self._asked[keys].argsort(descending=True, stable=True)
        free = torch.arange(len(self._kept), min(len(self._rows), len(self._kept) + len(keys)))
        newcomers, rest = order[: len(free)], order[len(free) :]
        self._kept = torch.cat([self._kept, keys[newcomers]])
        rivals = min(len(rest), len(self._kept) - len(free))
        least = self._asked[self._kept].topk(rivals, largest=False, sorted=True).indices
        better = self._asked[keys[rest[:rivals]]] > self._asked[self._kept[least]]
        self._slot[self._kept[least[better]]] = -1
        slots, taken = torch.cat([free, least[better]]), torch.cat([newcomers, rest[:rivals][better]])
        self._kept[slots] = keys[taken]
        self._slot[keys[taken]] = slots
        self._rows[slots] = rows[taken]
