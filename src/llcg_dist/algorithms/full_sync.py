"""Full synchronisation: mini-batch gradient descent over the whole graph, shared among machines step by step."""

from llcg_dist.algorithms.ggs import Ggs
from llcg_dist.comm.ledger import Kind


class FullSync(Ggs):
    """GGS whose machines never part: at every step gradients are averaged in part order, and all take the same step.

    The model crosses once, at the start. At the end of a round the machines send BatchNorm's statistics, the only
    floats that differ between them.
    """

    allowed_messages = Ggs.allowed_messages | {Kind.GRADIENTS}
    shares_gradients = True
