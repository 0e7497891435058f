"""Rules for rounds that may end without one of their machines, and for machines that are not equally fast."""

from typing import TYPE_CHECKING

from llcg_dist.config.algorithm import Aggregate
from llcg_dist.config.cluster import LatePolicy, OnLoss
from llcg_dist.config.rules import require

if TYPE_CHECKING:
    from llcg_dist.algorithms.base import Algorithm


def check_speeds(algorithm: "Algorithm") -> None:
    """Raises UserError where local steps cannot follow the speed of each machine."""
    config, settings = algorithm.config, algorithm.config.algorithm
    rule = f"must be false: machines of {settings.name} take their steps together"
    require(algorithm.machines_train_alone or not settings.balance_speed, config, "algorithm.balance_speed", rule)
    rule = f"must be {algorithm.num_machines} numbers, one for every part"
    fits = settings.speeds is None or len(settings.speeds) == algorithm.num_machines
    require(fits, config, "algorithm.speeds", rule)
    rule = "must be 0 with algorithm.balance_speed=true: what is measured is of machines that take as many steps each"
    require(not settings.balance_speed or config.diagnostics.every == 0, config, "diagnostics.every", rule)


def check_membership(algorithm: "Algorithm") -> None:
    """Raises UserError for settings that need what the method's rounds cannot do."""
    config, name = algorithm.config, algorithm.config.algorithm.name
    may_lose = config.cluster.on_loss == OnLoss.go_on
    rule = f"must be fail: a round of {name} cannot end without one of its machines"
    require(algorithm.goes_on_without or not may_lose, config, "cluster.on_loss", rule)
    rule = "must be false with cluster.on_loss=go_on: the server does not answer messages of the method's own"
    needs_answers = config.cluster.stand_in and algorithm.overrides("handlers")
    require(not (may_lose and needs_answers), config, "cluster.stand_in", rule)
    rule = "must be 0 with cluster.on_loss=go_on: what is measured takes all machines"
    require(not may_lose or config.diagnostics.every == 0, config, "diagnostics.every", rule)
    rule = f"must be drop: algorithm.aggregate={config.algorithm.aggregate} gives every update the same weight"
    weighs = config.algorithm.aggregate == Aggregate.mean or config.cluster.deadline is None
    require(weighs or config.cluster.late == LatePolicy.drop, config, "cluster.late", rule)
