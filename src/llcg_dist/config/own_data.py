"""Settings of graphs that come as Python objects: a saved PyG Data, a class or function of the user's, or memory."""

from dataclasses import dataclass, field
from typing import Any

from llcg_dist.config.dataset import Metric, OwnDataConfig


@dataclass
class ObjectConfig(OwnDataConfig):
    """A PyG Data or Dataset, a DGL graph, or a Graph; its masks are the split."""

    train_fraction: float = 0.6
    """Share of training nodes, drawn with dataset.seed if the data has no split."""
    val_fraction: float = 0.2
    """Share of validation nodes, which select the best model; the rest are test nodes."""
    split: int = 0
    """Which column of the data's masks is the split, if they have several."""
    metric: Metric | None = None
    """accuracy, f1_micro or roc_auc; default accuracy, or f1_micro for multi-label graphs."""

    def check(self) -> None:
        super().check()
        self.at_least(0, "split")


@dataclass
class PygConfig(ObjectConfig):
    """A PyG Data object that was saved with torch.save."""

    source: str = "pyg"
    name: str = "pyg"
    path: str | None = None
    """File written by torch.save(data); it is read with weights_only, so it cannot run code."""

    @property
    def described(self) -> str:
        return f"dataset.path={self.path}"

    def check(self) -> None:
        super().check()
        self.require(self.path is not None, "path", "must name the file of a saved PyG Data object with dataset=pyg")


@dataclass
class OwnConfig(ObjectConfig):
    """A class or function that returns the graph, e.g. torch_geometric.datasets.WikiCS."""

    source: str = "own"
    name: str = "own"
    target: str | None = None
    """Dotted path of a class or function that returns a PyG Data or Dataset, a DGL graph, or a Graph."""
    options: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of the target, for example dataset.options.root=data."""

    @property
    def described(self) -> str:
        return f"dataset.target={self.target}"

    def check(self) -> None:
        super().check()
        rule = "must be the dotted path of a class or function with dataset=own, e.g. my_package.data.load"
        self.require(self.target is not None, "target", rule)


@dataclass
class MemoryConfig(ObjectConfig):
    """A graph passed to llcg_dist.fit, identified by its content."""

    source: str = "memory"
    name: str = "memory"
    digest: str | None = None
    """SHA-256 of its arrays."""

    @property
    def described(self) -> str:
        return "data"
