"""What a model is made of, told without building it: importing its libraries takes seconds."""

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class LayerKind:
    """What is true of every layer of a kind, whatever its width."""

    reads_neighbours: bool = True
    weight_matrices: int = 1
    keeps_aggregate: bool = False
    """Whether its backward pass needs the neighbours' mean, and not what the weights make of each of them."""
    messages_per_edge: bool = False
    """Whether it holds a message for every edge; others are sparse products."""
    reads_hidden_in_place: bool = False
    """Whether evaluation reads its hidden input without a copy of the rows."""


OWN_LAYER = "O"
LAYER_KINDS: Mapping[str, LayerKind] = {
    "G": LayerKind(),
    "S": LayerKind(weight_matrices=2, keeps_aggregate=True, reads_hidden_in_place=True),
    "L": LayerKind(reads_neighbours=False),
    "A": LayerKind(messages_per_edge=True),
    "P": LayerKind(),
    OWN_LAYER: LayerKind(messages_per_edge=True),
}
"""Graph convolution, SAGE, linear, attention, propagation without weights of its own, and a layer of a user's model."""

BATCHNORM = "B"
_MESSAGE_PASSING = "".join(letter for letter, kind in LAYER_KINDS.items() if kind.reads_neighbours)


@dataclass(frozen=True)
class Layer:
    """A layer of a certain width."""

    kind: LayerKind
    width_in: int
    width_out: int


@dataclass(frozen=True)
class Structure:
    """A model as a string with a letter per layer: keys of LAYER_KINDS, and B for BatchNorm."""

    letters: str

    @property
    def depth(self) -> int:
        """How many layers aggregate over neighbours; a mini-batch has one block for each."""
        return sum(letter in _MESSAGE_PASSING for letter in self.letters)

    @property
    def has_batchnorm(self) -> bool:
        return BATCHNORM in self.letters

    @property
    def may_have_batchnorm(self) -> bool:
        """What a user's own model is made of is known only when it is built."""
        return self.has_batchnorm or OWN_LAYER in self.letters

    @property
    def has_batchnorm_after_message_passing(self) -> bool:
        """Whether a BatchNorm comes after the last message-passing layer, where only the rows of the seeds are left."""
        return BATCHNORM in re.split(f"[{_MESSAGE_PASSING}]", self.letters)[-1]

    def layers(self, num_features: int, hidden: int, num_classes: int) -> list[Layer]:
        """The layers with weights or neighbours, each as wide as the model makes it."""
        kinds = [LAYER_KINDS[letter] for letter in self.letters if letter != BATCHNORM]
        widths = [num_features, *[hidden] * (len(kinds) - 1), num_classes]
        return [Layer(kind, widths[i], widths[i + 1]) for i, kind in enumerate(kinds)]
