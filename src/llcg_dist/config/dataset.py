"""The settings that every source of graphs has; datasets.py lists the sources. Field texts are help texts."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Protocol

from omegaconf import MISSING

from llcg_dist.config.section import Section
from llcg_dist.errors import UserError

GRAPH_NAMES = {
    "planetoid": ("Cora", "CiteSeer", "PubMed"),
    "amazon": ("Computers", "Photo"),
    "coauthor": ("CS", "Physics"),
    "heterophilous": ("Roman-empire", "Amazon-ratings", "Minesweeper", "Tolokers", "Questions"),
}
"""Values of dataset.name for the sources that have several graphs; any other source has one graph, named like it."""


class Metric(StrEnum):
    accuracy = "accuracy"
    f1_micro = "f1_micro"
    roc_auc = "roc_auc"


@dataclass
class DatasetConfig(Section):
    """Where the graph comes from; each source adds its own settings."""

    section: ClassVar[str] = "dataset"

    source: str = MISSING
    """How the graph is read; set by the group: dataset=planetoid."""
    name: str = MISSING
    """Which graph of the source, e.g. dataset=planetoid dataset.name=PubMed; with dataset=files, any name for it."""
    seed: int = 0
    """Seed of a generated graph or a random split; independent of `seed`, so runs with other seeds share the graph."""
    subset: int | None = None
    """Keep only this many nodes, found by breadth-first search, and the edges between them; depends on dataset.seed."""

    @property
    def described(self) -> str:
        """What messages about its content begin with."""
        return f"dataset={self.source}"

    def check(self) -> None:
        super().check()
        self.at_least(0, "seed")
        self.check_name()

    def check_name(self) -> None:
        """The name becomes a part of paths."""
        names = GRAPH_NAMES.get(self.source, (self.source,))
        self.require(self.name in names, "name", f"must be one of {', '.join(names)} with dataset={self.source}")


@dataclass
class OwnDataConfig(DatasetConfig):
    """The user's own graph, with any name that can be used in paths."""

    def check_name(self) -> None:
        rule = "must be made of letters, digits, '_', '-' and '.'"
        self.require(bool(re.fullmatch(r"\w[\w.-]*", self.name)), "name", rule)


@dataclass
class BoundedConfig(DatasetConfig):
    """A source that reads or makes graphs larger than memory."""

    memory: float | None = None
    """GB of memory for sorting and converting chunks while the graph is loaded; default: a quarter of free memory. The
    result does not depend on it."""

    def check(self) -> None:
        super().check()
        self.require(self.memory is None or 0 < self.memory < float("inf"), "memory", "must be a number of GB above 0")


class Fractions(Protocol):
    """Settings of a random split; the nodes that remain are the test set."""

    train_fraction: float
    val_fraction: float


def check_fractions(config: Fractions) -> None:
    """Raises UserError for fractions outside [0, 1] or that add up to more than 1."""
    train, val = config.train_fraction, config.val_fraction
    if not 0 < train <= 1:
        raise UserError(f"dataset.train_fraction={train}: must lie in (0, 1]")
    if not (val >= 0 and train + val <= 1):
        raise UserError(f"dataset.val_fraction={val}: must not be negative, and with dataset.train_fraction at most 1")
