"""Rules for rounds that may end without one of their machines."""

from typing import TYPE_CHECKING

from llcg_dist.config.algorithm import Aggregate
from llcg_dist.config.cluster import LatePolicy, OnLoss
from llcg_dist.config.rules import require

if TYPE_CHECKING:
    from llcg_dist.algorithms.base import Algorithm


def check_membership(algorithm: "Algorithm") -> None:
    """Raises UserError for settings that need what the method's rounds cannot do."""
    config, name = algorithm.config, algorithm.config.algorithm.name
    may_lose = config.cluster.on_loss == OnLoss.go_on
    rule = f"must be fail: a round of {name} cannot end without one of its machines"
    require(algorithm.goes_on_without or not may_lose, config, "cluster.on_loss", rule)
    rule = "must be 0 with cluster.on_loss=go_on: what is measured takes all machines"
    require(not may_lose or config.diagnostics.every == 0, config, "diagnostics.every", rule)
    rule = f"must be drop: algorithm.aggregate={config.algorithm.aggregate} gives every update the same weight"
    weighs = config.algorithm.aggregate == Aggregate.mean or config.cluster.deadline is None
    require(weighs or config.cluster.late == LatePolicy.drop, config, "cluster.late", rule)
