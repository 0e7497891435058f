"""What follows from the figures of a pilot: pure functions, without a graph or a model."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

NEARLY = 0.97
"""The share of one machine's best score in the pilot whose time is compared."""
_WORTH = 0.9
"""Several machines must reach that score in less than this share of one machine's time: they cost more than time."""
_LINK_SHARE = 0.1
"""The share of a round that its bytes may take in the pilot with longer rounds, as far as K may rise."""
_TIMES_LONGER, _MOST_LOCAL_STEPS = 4, 64


@dataclass(frozen=True)
class Curve:
    """What a candidate did in the pilot."""

    name: str
    alone: bool
    """One machine, without parts."""
    seconds: list[float]
    """Cluster seconds until the end of each round."""
    scores: list[float]
    """Validation score of each round; 0 where it was not evaluated."""
    round_bytes: float = 0.0
    """Sent in a round, by all together."""
    link_seconds: float = 0.0
    """Of a round, on the network in question."""
    overrides: list[str] = field(default_factory=list)

    @property
    def best(self) -> float:
        return max(self.scores)

    def rounds_to(self, score: float) -> int | None:
        """The first round that has this score, on a straight line between two that were evaluated; None: no round of
        the pilot."""
        before, last = 0, 0.0
        for round_, found in enumerate(self.scores, start=1):
            if found >= score:
                share = (score - last) / max(found - last, 1e-12)
                return before + max(1, math.ceil((round_ - before) * share))
            if found:
                before, last = round_, found
        return None

    def seconds_to(self, score: float) -> float:
        """Infinite where no round of the pilot has it."""
        round_ = self.rounds_to(score)
        return math.inf if round_ is None else self.seconds[round_ - 1]

    def best_by(self, seconds: float) -> float:
        """The best score of the rounds that end within these seconds; 0 where none does."""
        found = [score for score, end in zip(self.scores, self.seconds, strict=True) if end <= seconds]
        return max(found, default=0.0)

    @property
    def score_range(self) -> tuple[float, float]:
        """What a run several times as long may end with: at least the pilot's best, at most that and once more what the
        second half of the pilot has gained. A rough bound: curves flatten."""
        middle = self.scores[: max(1, len(self.scores) // 2)]
        return self.best, min(1.0, self.best + max(0.0, self.best - max(middle)))


def target_of(curves: Sequence[Curve]) -> float:
    """NEARLY of the best score that one machine reaches in the pilot: what comes after is a matter of training on."""
    return NEARLY * max(curve.best for curve in curves if curve.alone)


def soonest(curves: Sequence[Curve], alone: bool) -> Curve:
    """The best of one machine, or of several."""
    target = target_of(curves)
    first, *others = (curve for curve in curves if curve.alone == alone)
    return functools.reduce(lambda best, curve: _sooner(curve, best, target), others, first)


def choose(curves: Sequence[Curve]) -> Curve:
    """The candidate that reaches the target soonest; several machines only where they are clearly sooner than one."""
    one = soonest(curves, alone=True)
    if all(curve.alone for curve in curves):
        return one
    return _sooner(soonest(curves, alone=False), one, target_of(curves), _WORTH)


def _sooner(curve: Curve, rival: Curve, target: float, worth: float = 1.0) -> Curve:
    """`curve` where it comes to the target in less than `worth` of the rival's time. Pilots of several machines cover
    fewer of their seconds: where one of the two ends before the target, it is the better one in equal time."""
    if curve.seconds_to(target) < math.inf and rival.seconds_to(target) < math.inf:
        return curve if curve.seconds_to(target) < worth * rival.seconds_to(target) else rival
    common = min(curve.seconds[-1], rival.seconds[-1])
    return curve if curve.best_by(common) > rival.best_by(common) else rival


def expected_speed_up(noise_scale: float, batch_size: int, machines: int) -> float:
    """Steps with batches of B to a loss, over those with batches of P·B: (1 + N/B) / (1 + N/(P·B)) with N the gradient
    noise scale. P where N is far above P·B, 1 where it is far below B."""
    if math.isinf(noise_scale):
        return float(machines)
    return (1 + noise_scale / batch_size) / (1 + noise_scale / (machines * batch_size))


def useful_machines(noise_scale: float, batch_size: int, most: int) -> int:
    """As many as still are worth half a machine each: expected_speed_up / P >= 1/2, which is P <= 2 + N/B."""
    if math.isinf(noise_scale):
        return most
    return max(1, min(most, math.floor(2 + noise_scale / batch_size)))


def longer_local_steps(steps: float, local_seconds: float, link_seconds: float) -> float:
    """K of a pilot with longer rounds: four times `steps`, whose local work takes `local_seconds`, or as many more as
    let the bytes of a round take a tenth of it; at most 64, unless `steps` is more."""
    needed = math.ceil(steps * link_seconds / (_LINK_SHARE * max(local_seconds, 1e-6)))
    return max(steps, min(max(_TIMES_LONGER * steps, needed), _MOST_LOCAL_STEPS))


def evaluate_every(training: float, evaluating: float) -> int:
    """Of a pilot: so rarely that evaluating takes no longer than training; seconds of one round and one evaluation."""
    return max(1, math.ceil(evaluating / max(training, 1e-6)))


def affordable_rounds(budget: float, seconds_of_round: float, fewest: int, most: int) -> int:
    """Of a pilot that shall take no longer than `budget` seconds."""
    return max(fewest, min(most, int(budget / max(seconds_of_round, 1e-6))))
