"""Settings of graphs that come as Python objects: a saved PyG Data, a class or function of the user's, or memory."""

from dataclasses import dataclass, field
from typing import Any

from llcg_dist.config.dataset import Metric, OwnDataConfig


@dataclass
class ObjectConfig(OwnDataConfig):
    """A PyG Data or Dataset, a DGL graph, or a Graph; its masks are the split."""

    train_fraction: float = 0.6
    """Share of the nodes to train on, drawn with dataset.seed where the data has no split of its own."""
    val_fraction: float = 0.2
    """Share of the nodes to choose the best model by; the rest tests it."""
    split: int = 0
    """Which split, where the data's masks have several columns."""
    metric: Metric | None = None
    """accuracy, f1_micro or roc_auc; default accuracy, for several labels a node f1_micro."""

    def check(self) -> None:
        super().check()
        self.at_least(0, "split")


@dataclass
class PygConfig(ObjectConfig):
    """A PyG Data object that was saved with torch.save."""

    source: str = "pyg"
    name: str = "pyg"
    path: str | None = None
    """File of torch.save(data); it is read with weights_only, so that it can run no code."""

    @property
    def described(self) -> str:
        return f"dataset.path={self.path}"

    def check(self) -> None:
        super().check()
        self.require(self.path is not None, "path", "must name the file of a saved PyG Data object with dataset=pyg")


@dataclass
class OwnConfig(ObjectConfig):
    """A class or function of the user's, e.g. torch_geometric.datasets.WikiCS."""

    source: str = "own"
    name: str = "own"
    target: str | None = None
    """Dotted path of a class or function that returns the data: a PyG Data or Dataset, a DGL graph, or a Graph."""
    options: dict[str, Any] = field(default_factory=dict)
    """Its keyword arguments: dataset.options.root=data."""

    @property
    def described(self) -> str:
        return f"dataset.target={self.target}"

    def check(self) -> None:
        super().check()
        rule = "must be the dotted path of a class or function with dataset=own, e.g. my_package.data.load"
        self.require(self.target is not None, "target", rule)


@dataclass
class MemoryConfig(ObjectConfig):
    """A graph that llcg_dist.fit was called with, known by its content."""

    source: str = "memory"
    name: str = "memory"
    digest: str | None = None
    """SHA-256 of its arrays."""

    @property
    def described(self) -> str:
        return "data"
