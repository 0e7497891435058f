"""Groups of runs with the same settings except the seed, and studies of all groups on one graph."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from llcg_dist.config.compare import LOCATION_KEYS
from llcg_dist.report.method_defaults import default_settings
from llcg_dist.report.runs import Run
from llcg_dist.report.style import method_rank

# Settings that do not affect a result (paths, how a run was started or logged), and the seed, which is averaged over.
_IGNORED = (LOCATION_KEYS - {"init_from"}) | {
    "seed",
    "resume",
    "verify",
    "logger",
    "algorithm.name",
    "checkpoint.every",
    "checkpoint.keep",
    "cluster.sealed",
}


@dataclass(frozen=True)
class Group:
    """Runs that differ only in their seed."""

    label: str
    method: str
    keys: dict[str, Any]
    """{dotted key: value} of the settings that differ between the groups of the study."""
    runs: list[Run]
    """One for each seed, in their order: the newest where a seed was run again."""
    repeated: list[Run] = field(default_factory=list)
    """Older runs of these seeds. They enter no mean: counted as seeds, they would make its spread too small."""

    @property
    def finished(self) -> bool:
        """Unfinished runs are groups of their own: their scores so far enter no mean of finished ones."""
        return self.runs[0].finished


@dataclass(frozen=True)
class Study:
    """All groups of runs on one graph, which can be compared in one figure."""

    title: str
    groups: list[Group]
    keys: dict[str, str]
    """{dotted key: short name} of the settings that differ between the groups."""
    shared: dict[str, Any]
    """{dotted key: value} of the settings that all runs share."""

    @property
    def runs(self) -> list[Run]:
        return [run for group in self.groups for run in [*group.runs, *group.repeated]]

    @property
    def metric(self) -> str:
        return str(self.runs[0].summary["metric"])


def studies(runs: Sequence[Run]) -> list[Study]:
    """One study per graph; graphs are the same if all their dataset settings are, paths aside."""
    by_graph = defaultdict(list)
    for run in runs:
        graph = {
            key: value for key, value in run.settings.items() if key.startswith("dataset.") and key not in LOCATION_KEYS
        }
        by_graph[_text(graph), run.summary["dataset"]].append(run)
    titles = Counter(name for _, name in by_graph)
    numbers: Counter[str] = Counter()
    result = []
    for (_, name), members in by_graph.items():
        numbers[name] += 1
        result.append(_study(name if titles[name] == 1 else f"{name} ({numbers[name]})", members))
    return result


def _study(title: str, runs: Sequence[Run]) -> Study:
    keys = sorted({key for run in runs for key in run.settings} - _ignored(runs))
    differing = [key for key in keys if len({_text(run.settings.get(key)) for run in runs}) > 1]
    members = defaultdict(list)
    for run in runs:
        members[run.method, _text([run.settings.get(key) for key in differing]), not run.finished].append(run)
    label_keys = {method: _label_keys(method, differing, runs) for method, *_ in members}
    distinguishing = [key for key in differing if any(key in keys_ for keys_ in label_keys.values())]
    short = _short_names(distinguishing)
    groups = []
    for (method, *_), group in sorted(members.items(), key=lambda item: _order(item[0][0], item[1][0], differing)):
        values = {key: group[0].settings.get(key) for key in distinguishing}
        label = " ".join([method, *(f"{short[key]}={plain_text(values[key])}" for key in label_keys[method])])
        label += "" if group[0].finished else " (unfinished)"
        of_seeds = {run.summary["seed"]: run for run in sorted(group, key=_started)}
        counted = [of_seeds[seed] for seed in sorted(of_seeds)]
        groups.append(Group(label, method, values, counted, [run for run in group if run not in counted]))
    shared = {key: runs[0].settings.get(key) for key in keys if key not in differing}
    return Study(title, groups, short, shared)


def _started(run: Run) -> float:
    """When a run was started last, in seconds; 0 where its folder does not say it."""
    try:
        return datetime.fromisoformat(run.starts[-1]["date"]).timestamp()
    except (LookupError, TypeError, ValueError):
        return 0.0


def _ignored(runs: Sequence[Run]) -> set[str]:
    """The settings that make no group of their own; a method's class is one of them unless two have the same name."""
    classes = {(run.method, run.settings.get("algorithm.target")) for run in runs}
    same_name = len(classes) > len({method for method, _ in classes})
    return _IGNORED if same_name else _IGNORED | {"algorithm.target"}


def _label_keys(method: str, differing: Iterable[str], runs: Sequence[Run]) -> list[str]:
    """The differing keys that a group's label shows: all but those with the method's default value in all its runs."""
    own_runs, defaults = [run for run in runs if run.method == method], default_settings(method)

    def is_default(key: str) -> bool:
        return key in defaults and {_text(run.settings.get(key)) for run in own_runs} == {_text(defaults[key])}

    return [key for key in differing if not is_default(key)]


def _order(method: str, run: Run, differing: Sequence[str]) -> tuple[Any, ...]:
    """Sort key of a group: by method, then by the values of the differing settings, numbers numerically."""
    values = (run.settings.get(key) for key in differing)
    return (
        method_rank(method),
        method,
        not run.finished,
        *((0, value, "") if is_numeric(value) else (1, 0, _text(value)) for value in values),
    )


def is_numeric(value: Any) -> bool:
    """Whether a setting is an int or a float, not a bool."""
    return type(value) in (int, float)


def _short_names(keys: Sequence[str]) -> dict[str, str]:
    """{dotted key: short name}: K for algorithm.K, model for model.name; the full key where two would be the same.

    `method` is the name of a table's first column, so sampling.method and partition.method keep their full keys.
    """
    short = {key: key.removesuffix(".name").rsplit(".", 1)[-1] for key in keys}
    uses = Counter([*short.values(), "method"])
    return {key: name if uses[name] == 1 else key for key, name in short.items()}


def plain_text(value: Any) -> str:
    """A setting as text, with floats in their shortest form."""
    return f"{value:g}" if type(value) is float else str(value)


def _text(value: Any) -> str:
    """A setting as JSON, to compare values of any type."""
    return json.dumps(value, sort_keys=True, default=str)
