"""Which runs belong together: the same settings but for the seed. And what tells one group from another."""

import functools
import importlib.resources
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import yaml

from llcg_dist.config.compare import PLACES
from llcg_dist.config.schema import AlgorithmConfig
from llcg_dist.report.runs import Run
from llcg_dist.report.style import method_rank

# Say nothing about a result: where files lie, how a run was started or watched; and the seed, averaged over.
_IGNORED = PLACES | {"seed", "resume", "verify", "logger", "algorithm.name", "checkpoint.every", "checkpoint.keep"}


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seed only."""

    label: str
    method: str
    keys: dict[str, Any]
    """Value of every setting that differs between the groups of the study, by dotted key."""
    runs: list[Run]


@dataclass(frozen=True)
class Study:
    """Everything that was run on one graph: what may be drawn into one picture."""

    title: str
    groups: list[Group]
    keys: dict[str, str]
    """The settings that tell the groups apart: dotted key, and its short name."""
    shared: dict[str, Any]
    """The settings that all runs have in common."""

    @property
    def runs(self) -> list[Run]:
        return [run for group in self.groups for run in group.runs]

    @property
    def metric(self) -> str:
        return str(self.runs[0].summary["metric"])


def studies(runs: Sequence[Run]) -> list[Study]:
    by_graph = defaultdict(list)
    for run in runs:
        graph = {key: value for key, value in run.settings.items() if key.startswith("dataset.") and key not in PLACES}
        by_graph[_text(graph), run.summary["dataset"]].append(run)
    titles = Counter(name for _, name in by_graph)
    numbers: Counter[str] = Counter()
    found = []
    for (_, name), members in by_graph.items():
        numbers[name] += 1
        found.append(_study(name if titles[name] == 1 else f"{name} ({numbers[name]})", members))
    return found


def _study(title: str, runs: Sequence[Run]) -> Study:
    keys = sorted({key for run in runs for key in run.settings} - _IGNORED)
    differing = [key for key in keys if len({_text(run.settings.get(key)) for run in runs}) > 1]
    members = defaultdict(list)
    for run in runs:
        members[run.method, _text([run.settings.get(key) for key in differing])].append(run)
    named = {method: _named(method, differing, runs) for method, _ in members}
    told_apart = [key for key in differing if any(key in of_method for of_method in named.values())]
    short = _short_names(told_apart)
    groups = []
    for (method, _), group in sorted(members.items(), key=lambda item: _order(item[0][0], item[1][0], differing)):
        values = {key: group[0].settings.get(key) for key in told_apart}
        label = " ".join([method, *(f"{short[key]}={_plain(values[key])}" for key in named[method])])
        groups.append(Group(label, method, values, sorted(group, key=lambda run: run.summary["seed"])))
    shared = {key: runs[0].settings.get(key) for key in keys if key not in differing}
    return Study(title, groups, short, shared)


def _named(method: str, differing: Iterable[str], runs: Sequence[Run]) -> list[str]:
    """The keys that a label needs: not those which have the value that this method always has unless told otherwise."""
    own, usual = [run for run in runs if run.method == method], usual_settings(method)

    def is_plain(key: str) -> bool:
        return key in usual and {_text(run.settings.get(key)) for run in own} == {_text(usual[key])}

    return [key for key in differing if not is_plain(key)]


@functools.cache
def usual_settings(method: str) -> dict[str, Any]:
    """What conf/algorithm/<method>.yaml and the schema say, by dotted key."""
    values = {f.name: f.default for f in fields(AlgorithmConfig)}
    preset = importlib.resources.files("llcg_dist.conf") / "algorithm" / f"{method}.yaml"
    if "/" not in method and preset.is_file():
        values |= yaml.safe_load(preset.read_text())
    return {f"algorithm.{key}": value for key, value in values.items()}


def _order(method: str, run: Run, differing: Sequence[str]) -> tuple[Any, ...]:
    """By method, then by the values, numbers as numbers."""
    values = (run.settings.get(key) for key in differing)
    return (
        method_rank(method),
        method,
        *((0, value, "") if is_numeric(value) else (1, 0, _text(value)) for value in values),
    )


def is_numeric(value: Any) -> bool:
    return type(value) in (int, float)


def _short_names(keys: Sequence[str]) -> dict[str, str]:
    """algorithm.K is K, model.name is model; the whole key where two would be called the same.

    A table's first column is called method: sampling.method and partition.method stay whole."""
    short = {key: key.removesuffix(".name").rsplit(".", 1)[-1] for key in keys}
    often = Counter([*short.values(), "method"])
    return {key: name if often[name] == 1 else key for key, name in short.items()}


def _plain(value: Any) -> str:
    return f"{value:g}" if type(value) is float else str(value)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
