"""All pilots of `llcg advise` in their order, and the answer that they lead to."""

from collections.abc import Callable, Sequence

from llcg_dist.advise.answer import Answer, Facts
from llcg_dist.advise.measure import Parts, alignment, cut, noise
from llcg_dist.advise.pilot import Trial, candidates, try_candidate
from llcg_dist.advise.reasons import answer
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.doctor.host import cpu_bfloat16

_DEFAULT_LINK_MBIT = 1_000.0
_OTHER_KEYS = ("partition.root", "partition.seed", "partition.backend")
"""Of partition, without a say in how the graph is cut."""


def advise(overrides: Sequence[str], seconds: float, say: Callable[[str], None]) -> Answer:
    """Pilots of about `seconds` in all on the graph of these settings; `say` tells how they go on."""
    config = load_config(overrides)
    tried = candidates(config, _chooses_parts(overrides))
    link_mbit = config.cluster.link_mbit or _DEFAULT_LINK_MBIT
    trials, cuts = list[Trial](), dict[str, Parts]()
    for candidate in tried:
        if not candidate.alone:
            cuts[candidate.name] = cut(load_config(candidate.settings(overrides)))
        trials.append(try_candidate(candidate, overrides, seconds / len(tried)))
        curve = trials[-1].curve(link_mbit)
        say(f"{candidate.name}: {100 * curve.best:.1f} % after {len(curve.scores)} rounds, {curve.seconds[-1]:.2g} s")
    facts = _facts(config, trials, cuts, link_mbit, overrides)
    return answer(config, [trial.curve(link_mbit) for trial in trials], facts, cpu_bfloat16())


def _facts(
    config: Config, trials: Sequence[Trial], cuts: dict[str, Parts], link_mbit: float, overrides: Sequence[str]
) -> Facts:
    """What is measured at the models that the pilots begin and end with."""
    graph = (next(iter(cuts.values())) if cuts else cut(config)).graph
    by_name = {trial.candidate.name: trial for trial in trials}
    aligned = {
        name: alignment(load_config(trial.candidate.settings(overrides)), cuts[name], trial.model)
        for name, trial in by_name.items()
        if name in cuts
    }
    return Facts(
        config.cluster.num_machines,
        config.train.local_batch_size,
        link_mbit,
        noise(config, graph, None),
        noise(config, graph, trials[0].model),
        {name: parts.quality for name, parts in cuts.items()},
        aligned,
    )


def _chooses_parts(overrides: Sequence[str]) -> bool:
    """Whether the user says how the graph is cut."""
    keys = [override.partition("=")[0] for override in overrides]
    return any(key == "partition" or (key.startswith("partition.") and key not in _OTHER_KEYS) for key in keys)
