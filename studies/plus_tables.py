"""From the runs of studies/plus.py to tables: paired differences, rounds and cluster time to 97 % of single."""

import statistics
from collections.abc import Mapping

from bench.harness import table

from studies.accuracy_tables import difference, is_below, mean_std, paired, rounds_text
from studies.plus_grid import ALONE, ALONE_AS_LONG, BEFORE, PLUS, SINGLE
from studies.timed_runs import TimedRun

BySeed = Mapping[int, TimedRun]
Results = dict[tuple[str, int], dict[str, dict[int, TimedRun]]]
"""(graph, machines) -> variant -> seed -> run."""
NEARLY = 0.97
_CLOSE = 0.5
"""Points of test score below single that llcg_plus may be, and of its best validation score that its last may be."""


def tuning_table(results: Results) -> str:
    """A row for each variant: its score, what it has over the base, and how soon it comes near single."""
    head = [
        "graph",
        "P",
        "variant",
        "test %",
        "over the base",
        "best - final val",
        "rounds to 97 %",
        "cluster s to 97 %",
    ]
    rows = []
    for (graph, machines), named in results.items():
        base, single = tests(named["base"]), named[SINGLE]
        for name, runs in named.items():
            over = "" if name == "base" else difference(tests(runs), base)
            rows.append([graph, machines, name, mean_std(list(tests(runs).values())), over, *_ends(runs, single)])
    return table(head, rows)


def judgement(results: Results) -> str:
    """llcg_plus against every rival, and which of the promises hold."""
    head = [
        "graph",
        "P",
        "method",
        "test %",
        "llcg_plus over it",
        "best - final val",
        "rounds to 97 %",
        "cluster s to 97 %",
    ]
    rows, lines = [], []
    for (graph, machines), named in results.items():
        plus, single = tests(named[PLUS]), named[SINGLE]
        for name, runs in named.items():
            over = "" if name == PLUS else difference(plus, tests(runs))
            rows.append([graph, machines, name, mean_std(list(tests(runs).values())), over, *_ends(runs, single)])
        lines += [f"- {graph}, P = {machines}: {line}" for line in promises(named)]
    return "\n".join([table(head, rows), "", *lines])


def promises(named: Mapping[str, BySeed]) -> list[str]:
    """What must hold of llcg_plus on one graph, and whether it does."""
    plus = tests(named[PLUS])
    behind = statistics.mean(tests(named[SINGLE])[seed] - score for seed, score in plus.items())
    lines = [_line(f"within {_CLOSE} points of single at equal rounds ({-behind:+.2f})", behind <= _CLOSE)]
    for own, rival in ALONE.items():
        found = paired(tests(named[own]), tests(named[rival]))
        what = f"{own} not below {rival} by more than two errors"
        lines.append(
            f"{what}: takes two seeds" if found is None else _line(f"{what} ({found[0]:+.2f})", not is_below(found))
        )
    rivals = {name: name for name in ("psgd_pa", "ggs", "llcg_paper")}
    for what, rival in {"server_only at equal cluster time": ALONE_AS_LONG, **rivals}.items():
        above = statistics.mean(score - tests(named[rival])[seed] for seed, score in plus.items())
        lines.append(_line(f"above {what} ({above:+.2f})", above > 0))
    fallen = statistics.mean(run.best - run.final for run in named[PLUS].values())
    lines.append(_line(f"ends within {_CLOSE} of its best ({fallen:.2f})", fallen <= _CLOSE))
    megabytes = [statistics.mean(run.megabytes for run in named[name].values()) for name in (PLUS, "psgd_pa")]
    same = abs(megabytes[0] - megabytes[1]) < 1e-3 * megabytes[1]
    return [*lines, _line(f"bytes of psgd_pa ({megabytes[0]:.2f} MB a round)", same), *_sooner(named)]


def _sooner(named: Mapping[str, BySeed]) -> list[str]:
    """Rounds and cluster seconds to 97 % of single, as shares of what llcg_plus took before."""
    lines = []
    for what, measure in (("rounds", _rounds), ("cluster seconds", TimedRun.seconds_to)):
        now, before = (
            statistics.median(measure(run, NEARLY * named[SINGLE][seed].best) for seed, run in named[name].items())
            for name in (PLUS, BEFORE)
        )
        share = now / before if before < float("inf") else 0.0
        lines.append(_line(f"fewer {what} to 97 % of single than before ({share:.2f})", share < 1))
    return lines


def _rounds(run: TimedRun, target: float) -> float:
    return run.rounds_to(target) or float("inf")


def tests(runs: BySeed) -> dict[int, float]:
    return {seed: run.test for seed, run in runs.items()}


def _ends(runs: BySeed, single: BySeed) -> list[str]:
    """How steady, and how soon near single of the same seed."""
    targets = {seed: NEARLY * single[seed].best for seed in runs}
    fallen = statistics.mean(run.best - run.final for run in runs.values())
    rounds = [run.rounds_to(targets[seed]) for seed, run in runs.items()]
    seconds = statistics.median(run.seconds_to(targets[seed]) for seed, run in runs.items())
    return [f"{fallen:.2f}", rounds_text(rounds), "never" if seconds == float("inf") else f"{seconds:.2f}"]


def _line(what: str, holds: bool) -> str:
    return f"{what}: {'holds' if holds else '**fails**'}"
