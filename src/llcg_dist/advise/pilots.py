"""All pilots of `llcg advise` in their order, and the answer that they lead to."""

from collections import deque
from collections.abc import Callable, Sequence

from llcg_dist.advise.answer import Answer, Facts
from llcg_dist.advise.decision import longer_local_steps
from llcg_dist.advise.measure import Parts, alignment, cut, noise
from llcg_dist.advise.pilot import LLCG, Trial, candidates, longer_rounds, try_candidate
from llcg_dist.advise.reasons import answer
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.doctor.host import cpu_bfloat16

_DEFAULT_LINK_MBIT = 1_000.0


def advise(overrides: Sequence[str], seconds: float, say: Callable[[str], None]) -> Answer:
    """Pilots of about `seconds` in all on the graph of these settings; `say` tells how they go on."""
    config = load_config(overrides)
    link_mbit = config.cluster.link_mbit or _DEFAULT_LINK_MBIT
    waiting, trials, cuts = deque(candidates(config)), list[Trial](), dict[str, Parts]()
    each = seconds / (len(waiting) + 1)
    while waiting:
        candidate = waiting.popleft()
        if not candidate.alone:
            cuts[candidate.name] = cut(load_config(candidate.settings(overrides)))
        trials.append(try_candidate(candidate, overrides, each))
        curve = trials[-1].curve(link_mbit)
        say(f"{candidate.name}: {100 * curve.best:.1f} % after {len(curve.scores)} rounds, {curve.seconds[-1]:.2g} s")
        if candidate.name == LLCG and not _chooses_steps(overrides):
            local = trials[-1].local_seconds
            waiting.append(longer_rounds(longer_local_steps(config.algorithm.K, local, curve.link_seconds)))
    facts = _facts(config, trials, cuts, link_mbit, overrides)
    return answer(config, [trial.curve(link_mbit) for trial in trials], facts, cpu_bfloat16())


def _facts(
    config: Config, trials: Sequence[Trial], cuts: dict[str, Parts], link_mbit: float, overrides: Sequence[str]
) -> Facts:
    """What is measured at the models that the pilots begin and end with."""
    graph = (next(iter(cuts.values())) if cuts else cut(config)).graph
    by_name = {trial.candidate.name: trial for trial in trials}
    configs = {name: load_config(by_name[name].candidate.settings(overrides)) for name in cuts}
    aligned = {name: alignment(config, cuts[name], by_name[name].model) for name, config in configs.items()}
    return Facts(
        config.cluster.num_machines,
        config.train.local_batch_size,
        link_mbit,
        noise(config, graph, None),
        noise(config, graph, trials[0].model),
        {name: parts.quality for name, parts in cuts.items()},
        aligned,
        configs,
    )


def _chooses_steps(overrides: Sequence[str]) -> bool:
    """Whether the user says how many steps a round has."""
    return any(override.partition("=")[0] in ("algorithm.K", "algorithm.S") for override in overrides)
