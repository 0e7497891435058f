"""Scores from a sample of the nodes (evaluate.sample), and how far they may be from those of all nodes."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from llcg_dist import seeding
from llcg_dist.data.graph import TEST, TRAIN, VAL, Graph
from llcg_dist.training.metrics import score

_GROUPS = 20
"""A standard error is estimated from so many scores, each of them without one group of the sampled nodes."""


@dataclass(frozen=True)
class NodeSample:
    """The share of each split that models are scored on; the same nodes in every round of a seed."""

    share: float = 1.0
    seed: int = 0

    def of_splits(self, graph: Graph) -> dict[int, Tensor]:
        """The scored training, validation and test nodes, at least one of each that there are."""
        nodes = {split: graph.nodes_in(split) for split in (TRAIN, VAL, TEST)}
        if self.share < 1:
            rng = seeding.diagnostics_generator(self.seed, seeding.SERVER_STREAM, 0)
            for split, all_nodes in nodes.items():
                nodes[split] = rng.choice(all_nodes, int(np.ceil(self.share * len(all_nodes))), replace=False)
        return {split: torch.from_numpy(chosen) for split, chosen in nodes.items()}


ALL_NODES = NodeSample()


def standard_error(logits: Tensor, labels: Tensor, metric: str, share: float) -> float | None:
    """Of the metric over nodes that were drawn at random, without replacement, as this share of all nodes.

    By the jackknife, for any metric: with g groups of nodes and the score s_i of all nodes but the i-th group,
    sqrt((1 - share) (g - 1) / g sum_i (s_i - mean)^2). None where the metric is undefined without some group.
    """
    groups = min(_GROUPS, len(labels))
    if groups < 2:
        return None
    group = torch.arange(len(labels)) % groups  # nodes come in the order in which they were drawn
    scores = [score(logits[group != left_out], labels[group != left_out], metric) for left_out in range(groups)]
    values = [value for value in scores if value is not None]
    if len(values) < groups:
        return None
    return float(np.sqrt((1 - share) * (groups - 1) * np.var(values)))
