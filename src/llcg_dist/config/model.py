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
    """Layer by layer: G (GCN), S (SAGE), L (linear), B (BatchNorm), e.g. SBSBS. Default: from name, layers, norm."""
    hidden: int = 64
    """Width of the hidden layers."""
    layers: int = 2
    """Message-passing layers; of a model of one's own, how many hops it reads."""
    dropout: float = 0.5
    """Share of the hidden values that a training step sets to zero."""
    norm: Norm = Norm.batch
    """batch (BatchNorm between layers; appnp: of the features, as the paper has it) or none."""
    input_norm: bool = False
    """BatchNorm of the features before the first layer, without affine weights: a leading B."""
    gcn_norm: GcnNorm = GcnNorm.symmetric
    """Normalisation of G: symmetric (D^-1/2 A D^-1/2) or row (D^-1 A), self-loops included."""
    heads: int = 1
    """Attention heads of gat; they share `hidden`."""
    teleport: float = 0.2
    """beta, the share of its first state that a node of appnp returns to at every propagation."""
    target: str | None = None
    """own: dotted path of a class or function, called with in_channels, out_channels and the options, that returns a
    module with forward(x, edge_index), or one with depth and forward(x, blocks)."""
    options: dict[str, Any] = field(default_factory=dict)
    """own: its keyword arguments: model.options.heads=4."""

    def check(self) -> None:
        super().check()
        self.at_least(1, "hidden", "layers", "heads")
        self.at_most(1000, "layers")  # more would run out of memory inside a library, without a message that helps
        self.fractions_below_1("dropout")
        self.require(0 <= self.teleport <= 1, "teleport", "must lie in [0, 1]")
