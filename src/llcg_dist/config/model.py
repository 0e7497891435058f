"""Section `model`: which model, its sizes and normalisation."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from llcg_dist.config.section import Section


class Norm(StrEnum):
    batch = "batch"
    none = "none"


class GcnNorm(StrEnum):
    symmetric = "symmetric"
    row = "row"


@dataclass
class ModelConfig(Section):
    section: ClassVar[str] = "model"

    name: str = "sage"
    arch: str | None = None
    """A letter per layer: G (GCN), S (SAGE), L (linear), B (BatchNorm), e.g. SBSBS. Default: by name, layers, norm."""
    hidden: int = 64
    """Width of the hidden layers."""
    layers: int = 2
    """Number of message-passing layers; with model=own, the number of hops that the model reads."""
    dropout: float = 0.5
    """Dropout probability of hidden values."""
    norm: Norm = Norm.batch
    """batch (BatchNorm between layers; for appnp on the features, as in the paper) or none."""
    input_norm: bool = False
    """Whether BatchNorm without affine weights is applied to the features before the first layer (a leading B)."""
    gcn_norm: GcnNorm = GcnNorm.symmetric
    """Normalisation of GCN layers: symmetric (D^-1/2 A D^-1/2) or row (D^-1 A), with self-loops."""
    heads: int = 1
    """Number of attention heads of gat; `hidden` is divided among them."""
    teleport: float = 0.2
    """appnp: beta, the weight of a node's initial state in every propagation step."""
    target: str | None = None
    """own: dotted path of a class or function, called with in_channels, out_channels and the options, that returns a
    module with forward(x, edge_index), or one with depth and forward(x, blocks)."""
    options: dict[str, Any] = field(default_factory=dict)
    """own: keyword arguments of the target, for example model.options.heads=4."""

    def check(self) -> None:
        super().check()
        self.at_least(1, "hidden", "layers", "heads")
        self.at_most(1000, "layers")  # more would run out of memory inside a library, without a message that helps
        self.fractions_below_1("dropout")
        self.require(0 <= self.teleport <= 1, "teleport", "must lie in [0, 1]")
