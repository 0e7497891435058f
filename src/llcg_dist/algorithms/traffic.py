"""How many bytes a method sends in a round, predicted from the sizes of its messages."""

from dataclasses import dataclass


@dataclass(frozen=True)
class MessageBytes:
    """Sizes of what may cross, for one machine."""

    model: int
    """As it is compressed."""
    statistics: int
    """BatchNorm's running statistics in float32."""
    gradients: int
    """Of all learned parameters."""
    features_per_step: float
    """Remote features that one step fetches where cut edges are kept."""


@dataclass(frozen=True)
class RoundTraffic:
    """Mean bytes a round, summed over all machines; the fields match the byte columns of metrics.jsonl."""

    up: float
    down: float
    gradients: float = 0.0
    features: float = 0.0

    @property
    def total(self) -> float:
        return self.up + self.down + self.gradients + self.features
