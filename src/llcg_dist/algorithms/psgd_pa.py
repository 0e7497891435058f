"""Parallel SGD with periodic averaging (Algorithm 1): what the paper shows to lose accuracy for good."""

from llcg_dist.algorithms.base import Algorithm


class PsgdPa(Algorithm):
    """K local steps on every part with its cut edges dropped, then the average."""
