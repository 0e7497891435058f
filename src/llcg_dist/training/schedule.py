"""The schedule of local steps: K·rho^r steps in round r, rounded to integers whose total is exact."""

import itertools
import math
from collections.abc import Sequence

from llcg_dist.config.algorithm import AlgorithmConfig, Schedule
from llcg_dist.errors import UserError

_MAX_STEPS = 10**12
"""Largest total (equal_total) or number of steps in one round (literal) that a schedule may have."""


def local_steps(config: AlgorithmConfig, planned_rounds: int, num_rounds: int | None = None) -> list[int]:
    """The local steps of rounds 1..R with R = num_rounds; rounds beyond planned_rounds continue the same growth.

    With C(r) the running sum of base·rho^r, steps(r) = round(C(r)) − round(C(r−1)), at least 1; what this minimum adds
    is taken off the last rounds. `equal_total` picks the base so that the sum is round(K·R); `literal` takes K itself.
    """
    num_rounds = num_rounds or planned_rounds
    if config.schedule == Schedule.equal_total:
        if config.K * planned_rounds > _MAX_STEPS:
            raise UserError(f"algorithm.K={config.K:g}: more than {_MAX_STEPS:.0e} local steps in all")
        total = _round_half_up(config.K * planned_rounds)
        running_sums = [total * _share(config.rho, r, planned_rounds) for r in range(num_rounds + 1)]
    else:
        running_sums = _literal_sums(config, num_rounds)
        total = max(_round_half_up(running_sums[planned_rounds]), planned_rounds)
    rounded = [_round_half_up(running_sum) for running_sum in running_sums]
    differences = [after - before for before, after in zip(rounded, rounded[1:], strict=False)]
    steps = _at_least_one(differences[:planned_rounds], total) + [max(1, step) for step in differences[planned_rounds:]]
    if config.max_local_steps is not None:
        steps = [min(step, config.max_local_steps) for step in steps]
    return steps


def _share(rho: float, r: int, num_rounds: int) -> float:
    """C(r) / C(R), written so that rho^R may overflow a float."""
    if rho == 1:
        return r / num_rounds
    growth = math.log(rho)
    if growth < 0:
        return math.expm1(r * growth) / math.expm1(num_rounds * growth)
    return math.exp((r - num_rounds) * growth) * math.expm1(-r * growth) / math.expm1(-num_rounds * growth)


def _literal_sums(config: AlgorithmConfig, num_rounds: int) -> list[float]:
    """C(0..R) of K·rho^r, with terms clipped just above max_local_steps, which itself applies to the rounded steps."""
    limit = config.max_local_steps
    clip = _MAX_STEPS if limit is None else limit + 1 + num_rounds
    terms = [config.K * math.exp(min(r * math.log(config.rho), 600.0)) for r in range(1, num_rounds + 1)]
    if limit is None and max(terms) > _MAX_STEPS:
        rule = f"round {num_rounds} would take {max(terms):.1e} local steps; set algorithm.max_local_steps"
        raise UserError(f"algorithm.schedule=literal: {rule}")
    return list(itertools.accumulate((min(term, clip) for term in terms), initial=0.0))


def _at_least_one(steps: Sequence[int], total: int) -> list[int]:
    """Raises every round to at least 1 step and takes the surplus over `total` off the last rounds."""
    raised = [max(1, step) for step in steps]
    surplus = sum(raised) - total
    for index in reversed(range(len(raised))):
        removed = min(surplus, raised[index] - 1)
        raised[index] -= removed
        surplus -= removed
    return raised


def _round_half_up(x: float) -> int:
    return math.floor(x + 0.5)
