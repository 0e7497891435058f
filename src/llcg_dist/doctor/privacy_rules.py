"""Says what the noise on updates is worth, before a job with algorithm.noise starts."""

from llcg_dist.config.algorithm import NoiseSeed
from llcg_dist.config.schema import Config
from llcg_dist.doctor.findings import OK, WARN, Finding
from llcg_dist.training.privacy import privacy_line, privacy_of

_LOOSE = 10.0
"""Above this epsilon a guarantee says little."""


def check_privacy(config: Config) -> list[Finding]:
    """The (epsilon, delta) of all planned rounds, and who can remove the noise; nothing without noise."""
    found = privacy_of(config.algorithm, config.num_rounds)
    if found is None:
        return []
    loose = found["epsilon"] > _LOOSE
    advice = f"an epsilon above {_LOOSE:g} promises little: more algorithm.noise, or fewer rounds" if loose else ""
    findings = [Finding(WARN if loose else OK, "updates", privacy_line(found), advice)]
    if config.algorithm.noise_seed == NoiseSeed.job:
        what = "algorithm.noise_seed=job: whoever knows the job's seed can remove the noise"
        findings.append(
            Finding(WARN, "updates", what, "set algorithm.noise_seed=secret where it shall protect anybody")
        )
    return findings
