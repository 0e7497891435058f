"""All pilots of `llcg advise` in their order, and the answer that they lead to."""

from collections.abc import Callable, Sequence

from llcg_dist.advise.answer import Answer, Facts
from llcg_dist.advise.decision import longer_local_steps, soonest
from llcg_dist.advise.measure import Parts, alignment, cut, noise
from llcg_dist.advise.pilot import LLCG, Candidate, Trial, candidates, longer_rounds, on_balanced_parts, try_candidate
from llcg_dist.advise.reasons import answer
from llcg_dist.config.compose import load_config
from llcg_dist.config.partition import PartitionMethod
from llcg_dist.config.schema import Config
from llcg_dist.doctor.host import cpu_bfloat16

_DEFAULT_LINK_MBIT = 1_000.0
_MOST_WAYS = 5
"""That are tried; they share the time."""


def advise(overrides: Sequence[str], seconds: float, say: Callable[[str], None]) -> Answer:
    """Pilots of about `seconds` in all on the graph of these settings; `say` tells how they go on."""
    config = load_config(overrides)
    link_mbit = config.cluster.link_mbit or _DEFAULT_LINK_MBIT
    trials, cuts = list[Trial](), dict[str, Parts]()

    def try_one(candidate: Candidate) -> None:
        if not candidate.alone:
            cuts[candidate.name] = cut(load_config(candidate.settings(overrides)))
        trials.append(try_candidate(candidate, overrides, seconds / _MOST_WAYS))
        curve = trials[-1].curve(link_mbit)
        say(f"{candidate.name}: {100 * curve.best:.1f} % after {len(curve.scores)} rounds, {curve.seconds[-1]:.2g} s")

    for candidate in candidates(config):
        try_one(candidate)
    several = config.cluster.num_machines > 1
    if several and not _sets(overrides, "algorithm.K", "algorithm.S"):
        try_one(_longer(config, trials, link_mbit))
    of_a_preset = config.partition.method != PartitionMethod.metis
    if several and not of_a_preset and not _sets(overrides, "partition", "partition.balance"):
        try_one(_balanced(trials, link_mbit))
    facts = _facts(config, trials, cuts, link_mbit, overrides)
    return answer(config, [trial.curve(link_mbit) for trial in trials], facts, cpu_bfloat16())


def _longer(config: Config, trials: Sequence[Trial], link_mbit: float) -> Candidate:
    """LLCG once more, with longer rounds."""
    tried = next(trial for trial in trials if trial.candidate.name == LLCG)
    on_link = tried.curve(link_mbit).link_seconds
    return longer_rounds(longer_local_steps(config.algorithm.K, tried.local_seconds, on_link))


def _balanced(trials: Sequence[Trial], link_mbit: float) -> Candidate:
    """The best of several machines so far, on other parts."""
    best = soonest([trial.curve(link_mbit) for trial in trials], alone=False)
    return on_balanced_parts(next(trial.candidate for trial in trials if trial.candidate.name == best.name))


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


def _sets(overrides: Sequence[str], *keys: str) -> bool:
    """Whether the user sets one of these keys."""
    return any(override.partition("=")[0] in keys for override in overrides)
