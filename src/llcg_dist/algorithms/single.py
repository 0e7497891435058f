"""One machine with the whole graph: what distributed training is measured against."""

from llcg_dist.algorithms.base import Algorithm


class Single(Algorithm):
    """Rank 0 trains on the whole graph with batches of P·B_L: a round sees as many examples as P machines would."""

    trains_on_parts = False
