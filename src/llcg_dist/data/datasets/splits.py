"""Splits: the training, validation and test nodes of a graph as one int8 array."""

from collections.abc import Callable, Mapping

import numpy as np

from llcg_dist.config.dataset import Fractions, check_fractions
from llcg_dist.data.graph import TEST, TRAIN, UNUSED, VAL
from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError

SPLITS = {"train": TRAIN, "val": VAL, "test": TEST}

Location = Callable[[int], str]
"""Where the split of a node stands: the file, and its line or row."""


def split_by_fractions(nodes: Array, num_nodes: int, config: Fractions, rng: np.random.Generator) -> Array:
    """[N] int8: a random split of `nodes` into TRAIN, VAL and TEST by fractions; other nodes are UNUSED."""
    check_fractions(config)
    order = rng.permutation(nodes)
    train, val = round(config.train_fraction * len(nodes)), round(config.val_fraction * len(nodes))
    return split_from_nodes(num_nodes, order[:train], order[train : train + val], order[train + val :])


def split_from_nodes(num_nodes: int, train: Array, val: Array, test: Array) -> Array:
    """[N] int8 from three arrays of node numbers, or three masks."""
    split = np.full(num_nodes, UNUSED, np.int8)
    for nodes, value in ((train, TRAIN), (val, VAL), (test, TEST)):
        split[nodes] = value
    return split


def split_from_masks(masks: Mapping[str, Array], size: int, location: Location) -> Array:
    """[size] int8 from the masks [size] of train, val and test, which must not overlap."""
    split = np.full(size, UNUSED, np.int8)
    for name, mask in masks.items():
        both = np.flatnonzero(mask & (split != UNUSED))
        if len(both):
            first = split_name(split[both[0]])
            raise UserError(f"{location(int(both[0]))}: in {first} and in {name}: splits must not overlap")
        split[mask] = SPLITS[name]
    return split


def split_name(value: int) -> str:
    """train, val or test."""
    return next(name for name, number in SPLITS.items() if number == value)
