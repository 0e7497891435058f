"""From curves and facts to advised settings, and the sentences that say why."""

import math
from collections.abc import Sequence
from typing import Any

from llcg_dist.advise.answer import Answer, Facts
from llcg_dist.advise.decision import Curve, choose, target_of, useful_machines
from llcg_dist.config.schema import Config

_WIDE = 128
"""Hidden width from which bfloat16 makes a step faster."""


def answer(config: Config, curves: Sequence[Curve], facts: Facts, bfloat16: str | None) -> Answer:
    """`bfloat16`: what multiplies bfloat16 matrices faster here, if anything."""
    chosen = choose(curves)
    settings = _alone(config, chosen) if chosen.alone else _together(chosen, facts.configs[chosen.name])
    wide = bfloat16 is not None and config.model.hidden >= _WIDE
    if wide:
        settings["train.precision"] = "bfloat16"
    reasons = [_times(curves, chosen), _noise(facts)]
    if not chosen.alone:
        reasons += [_parts(facts, chosen), _machines(facts)]
    if wide:
        reasons.append(f"This CPU has {bfloat16}: steps of a model as wide as this are faster in bfloat16.")
    return Answer(chosen, list(curves), facts, settings, [reason for reason in reasons if reason])


def _alone(config: Config, chosen: Curve) -> dict[str, Any]:
    """A batch of one machine is P times train.local_batch_size in the pilot."""
    given = [value for value in chosen.overrides if value.startswith("train.local_batch_size=")]
    each = int(given[0].partition("=")[2]) if given else config.train.local_batch_size
    batch = each * config.cluster.num_machines
    return {**_presets(chosen), "cluster.num_machines": 1, "train.local_batch_size": batch}


def _together(chosen: Curve, tried: Config) -> dict[str, Any]:
    """What was measured, spelled out where the preset brings it."""
    steps = tried.algorithm
    of_parts = dict(override.split("=") for override in chosen.overrides if override.startswith("partition."))
    return {
        **_presets(chosen),
        **of_parts,
        "cluster.num_machines": tried.cluster.num_machines,
        "algorithm.K": steps.K,
        "algorithm.rho": steps.rho,
        "algorithm.S": steps.S,
        "algorithm.correction": str(steps.correction),
        "train.local_batch_size": tried.train.local_batch_size,
    }


def _presets(chosen: Curve) -> dict[str, str]:
    """{group: preset} of what it trained with."""
    pairs = (override.split("=") for override in chosen.overrides)
    return {key: value for key, value in pairs if "." not in key}


def _times(curves: Sequence[Curve], chosen: Curve) -> str:
    target = target_of(curves)
    times = [f"{curve.name} {_seconds(curve.seconds_to(target))}" for curve in curves]
    goal = f"{100 * target:.1f} % (97 % of the best score of one machine in the pilot)"
    ahead = "It did not come there in the pilot, but was ahead in equal time. "
    why = ahead if math.isinf(chosen.seconds_to(target)) else ""
    return f"Cluster time to {goal}: {'; '.join(times)}. {why}So {chosen.name} it is."


def _noise(facts: Facts) -> str:
    after = "more than the pilot can tell" if math.isinf(facts.noise_after) else f"{facts.noise_after:,.0f}"
    start = "more than it can tell" if math.isinf(facts.noise_at_start) else f"{facts.noise_at_start:,.0f}"
    all_together = facts.batch_size * facts.machines
    return (
        f"The gradient noise scale is {after} examples after the pilot ({start} at the start), where {facts.machines} "
        f"machines see {all_together:,} in a step and one sees {facts.batch_size:,}: by it they need "
        f"{facts.speed_up:.1f} times fewer steps."
    )


def _parts(facts: Facts, chosen: Curve) -> str:
    if chosen.name not in facts.parts:
        return ""
    quality, aligned = facts.parts[chosen.name], facts.alignment[chosen.name]
    cut, skew = 100 * quality.cut_share, 100 * quality.worst_label_skew
    lost = f"These parts lose {cut:.0f} % of the edges and skew labels by {skew:.0f} % at worst"
    return f"{lost}; gradients without the cut edges align with those of the graph by {aligned:.2f}."


def _machines(facts: Facts) -> str:
    useful = useful_machines(facts.noise_after, facts.batch_size, facts.machines)
    if useful == facts.machines:
        return ""
    return f"More than {useful} machines with these batches bring less than half a machine each."


def _seconds(seconds: float) -> str:
    return "not in the pilot" if math.isinf(seconds) else f"{seconds:.2g} s"
