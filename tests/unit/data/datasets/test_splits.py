"""Splits drawn by fractions, or given as nodes or masks."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.config.dataset import check_fractions
from llcg_dist.data.datasets.splits import split_by_fractions, split_from_nodes
from llcg_dist.data.graph import TEST, TRAIN, UNUSED, VAL
from llcg_dist.errors import UserError


def fractions(train: float, val: float) -> SimpleNamespace:
    return SimpleNamespace(train_fraction=train, val_fraction=val)


@given(st.integers(1, 100), st.integers(1, 10), st.integers(0, 10))
def test_every_node_is_in_one_split_of_its_size(num_nodes: int, tenths: int, val_tenths: int) -> None:
    nodes = np.arange(0, num_nodes, 2)
    train, val = tenths / 10, min(val_tenths, 10 - tenths) / 10
    split = split_by_fractions(nodes, num_nodes, fractions(train, val), np.random.default_rng(0))
    assert (split[1::2] == UNUSED).all()
    sizes = [np.count_nonzero(split[nodes] == value) for value in (TRAIN, VAL, TEST)]
    assert sum(sizes) == len(nodes)
    assert sizes[:2] == [round(train * len(nodes)), min(round(val * len(nodes)), len(nodes) - sizes[0])]


def test_the_generator_decides() -> None:
    def drawn(seed: int) -> list[int]:
        rng = np.random.default_rng(seed)
        return split_by_fractions(np.arange(50), 50, fractions(0.5, 0.25), rng).tolist()

    assert drawn(1) == drawn(1) != drawn(2)


def test_nodes_or_masks() -> None:
    expected = [TRAIN, TRAIN, VAL, TEST, UNUSED]
    nodes = np.array([1, 0]), np.array([2]), np.array([3])
    masks = tuple(np.array(expected) == value for value in (TRAIN, VAL, TEST))
    assert split_from_nodes(5, *nodes).tolist() == split_from_nodes(5, *masks).tolist() == expected


@pytest.mark.parametrize(
    ("train", "val", "key"),
    [(0.0, 0.5, "train"), (1.1, 0.0, "train"), (0.5, -0.1, "val"), (0.5, 0.6, "val"), (float("nan"), 0.0, "train")],
)
def test_fractions_that_cannot_be(train: float, val: float, key: str) -> None:
    with pytest.raises(UserError, match=rf"^dataset\.{key}_fraction="):
        check_fractions(fractions(train, val))
