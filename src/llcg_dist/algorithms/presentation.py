"""How each method is shown in reports: order, colours, role. Imports nothing, so that a report needs no torch."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    REFERENCE = "reference"
    """What distributed training is measured against."""
    BASELINE = "baseline"
    """Plain averaging."""
    METHOD = "method"
    CONTROL = "control"
    """No distributed training at all."""


@dataclass(frozen=True)
class Presentation:
    colour: str
    """On a light page."""
    dark: str
    """On a dark page."""
    marker: str
    role: Role = Role.METHOD


# In the order of tables and legends. Okabe and Ito's palette, with Tol's indigo and wine; a test checks the distances
# under each form of colour blindness.
PRESENTATIONS = {
    "single": Presentation("#202124", "#f1f3f4", "s", Role.REFERENCE),
    "full_sync": Presentation("#E69F00", "#ffc857", "D"),
    "ggs": Presentation("#CC79A7", "#e59ac6", "^"),
    "subgraph_approx": Presentation("#56B4E9", "#9fdcff", "v"),
    "llcg": Presentation("#0072B2", "#2f8fdc", "o"),
    "llcg_paper": Presentation("#332288", "#7a5cf0", "<"),
    "llcg_plus": Presentation("#882255", "#c2407f", ">"),
    "psgd_pa": Presentation("#D55E00", "#ff7a2e", "X", Role.BASELINE),
    "server_only": Presentation("#009E73", "#00b386", "P", Role.CONTROL),
}
"""A method that is not here is shown last, in grey."""
