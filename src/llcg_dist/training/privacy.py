"""How much the noisy updates of a run tell: the (epsilon, delta) of the Gaussian mechanism over its rounds.

A machine sends an update of at most C in every round, with noise of standard deviation z·C. Whether its update or none
(0) is behind the noise, R rounds together are as hard to tell apart as N(0, 1) from N(√R/z, 1): composition of Gaussian
mechanisms is exact, adaptive or not (Dong, Roth and Su, Gaussian Differential Privacy, 2022), and so is its delta at
any epsilon (Balle and Wang, Improving the Gaussian Mechanism, 2018). No update is left to chance (there is no
subsampling), so that nothing needs the numerical accountants of the libraries for it.
"""

import math
from typing import Any

from llcg_dist.config.algorithm import AlgorithmConfig


def epsilon(noise: float, rounds: int, delta: float) -> float:
    """The least epsilon at this delta, after so many rounds with noise of `noise` times the clip."""
    mean = math.sqrt(rounds) / noise
    if _delta(0.0, mean) <= delta:
        return 0.0
    low, high = 0.0, mean * (mean / 2 + math.sqrt(2 * math.log(1 / delta)))  # by the normal distribution's tail bound
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _delta(middle, mean) > delta else (low, middle)
    return high


def _delta(eps: float, mean: float) -> float:
    """Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)."""
    from scipy.special import log_ndtr  # takes a while to import, and few runs have noise

    above, below = log_ndtr(mean / 2 - eps / mean), eps + log_ndtr(-mean / 2 - eps / mean)
    return float(math.exp(above) * -math.expm1(below - above))


def privacy_of(settings: AlgorithmConfig, rounds: int) -> dict[str, Any] | None:
    """What summary.json says of a run with noise; None of one without."""
    if not settings.noise or not rounds:
        return None
    return {
        "epsilon": epsilon(settings.noise, rounds, settings.delta),
        "delta": settings.delta,
        "rounds": rounds,
        "noise": settings.noise,
        "clip": settings.clip,
        "noise_seed": str(settings.noise_seed),
    }


def privacy_line(found: dict[str, Any]) -> str:
    """One line with epsilon, delta, rounds, noise and clip of a run; `found`: what privacy_of says of it."""
    level = f"epsilon {found['epsilon']:.3g} at delta {found['delta']:g}"
    how = f"noise {found['noise']:g} x clip {found['clip']:g}"
    return f"updates of a machine over {found['rounds']} rounds: {level} ({how})"
