"""How many local steps each round takes: K·rho^r, as whole numbers with an exact total."""

import itertools
import math
from collections.abc import Sequence

from llcg_dist.config.schema import AlgorithmConfig
from llcg_dist.errors import UserError

_TOO_MANY = 10**12


def local_steps(config: AlgorithmConfig, planned_rounds: int, num_rounds: int | None = None) -> list[int]:
    """Steps of rounds 1..R, R = num_rounds; more rounds than were planned go on growing from the planned ones.

    With C(r) the running sum of base·rho^r, steps(r) = round(C(r)) − round(C(r−1)), at least 1; what this minimum adds
    is taken off the last rounds. `equal_total` picks the base so that the sum is round(K·R); `literal` takes K itself.
    """
    num_rounds = num_rounds or planned_rounds
    if config.schedule == "equal_total":
        if config.K * planned_rounds > _TOO_MANY:
            raise UserError(f"algorithm.K={config.K:g}: more than {_TOO_MANY:.0e} local steps in all")
        total = _half_up(config.K * planned_rounds)
        running = [total * _share(config.rho, r, planned_rounds) for r in range(num_rounds + 1)]
    else:
        running = _literal_sums(config, num_rounds)
        total = max(_half_up(running[planned_rounds]), planned_rounds)
    whole = [_half_up(c) for c in running]
    raw = [after - before for before, after in zip(whole, whole[1:], strict=False)]
    steps = _at_least_one(raw[:planned_rounds], total) + [max(1, step) for step in raw[planned_rounds:]]
    if config.max_local_steps is not None:
        steps = [min(step, config.max_local_steps) for step in steps]
    return steps


def _share(rho: float, r: int, num_rounds: int) -> float:
    """C(r) / C(R), written so that rho^R may exceed any float."""
    if rho == 1:
        return r / num_rounds
    growth = math.log(rho)
    if growth < 0:
        return math.expm1(r * growth) / math.expm1(num_rounds * growth)
    return math.exp((r - num_rounds) * growth) * math.expm1(-r * growth) / math.expm1(-num_rounds * growth)


def _literal_sums(config: AlgorithmConfig, num_rounds: int) -> list[float]:
    """C(0..R) of K·rho^r. Terms beyond the limit are clipped just above it; the limit applies to whole steps."""
    limit = config.max_local_steps
    clip = _TOO_MANY if limit is None else limit + 1 + num_rounds
    terms = [config.K * math.exp(min(r * math.log(config.rho), 600.0)) for r in range(1, num_rounds + 1)]
    if limit is None and max(terms) > _TOO_MANY:
        rule = f"round {num_rounds} would take {max(terms):.1e} local steps; set algorithm.max_local_steps"
        raise UserError(f"algorithm.schedule=literal: {rule}")
    return list(itertools.accumulate((min(term, clip) for term in terms), initial=0.0))


def _at_least_one(steps: Sequence[int], total: int) -> list[int]:
    raised = [max(1, step) for step in steps]
    surplus = sum(raised) - total
    for index in reversed(range(len(raised))):
        taken = min(surplus, raised[index] - 1)
        raised[index] -= taken
        surplus -= taken
    return raised


def _half_up(x: float) -> int:
    return math.floor(x + 0.5)
