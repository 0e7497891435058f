"""From runs to the tables of docs/accuracy.md: means, deviations, and paired differences with their standard errors."""

import json
import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

REACH = 0.97
"""The share of single's score whose round is looked for."""
REFERENCE = "single, recalibrate"
PLUS = "llcg_plus, recalibrate"
RIVALS = (
    "psgd_pa, average",
    "psgd_pa, recalibrate",
    "server_only, recalibrate",
    "server_only S=4, recalibrate",
    "llcg, average",
    "llcg, recalibrate",
    "ggs, recalibrate",
    "full_sync, recalibrate",
    REFERENCE,
)

Curve = list[dict[str, Any]]


class Runs:
    """The finished runs under a folder: part/graph/method/seed."""

    def __init__(self, folder: Path) -> None:
        self._summaries: dict[tuple[str, str, str], dict[int, dict[str, Any]]] = {}
        self._folder = folder
        for path in sorted(folder.glob("*/*/*/*/summary.json")):
            part, graph, method, seed = path.relative_to(folder).parts[:4]
            of_method = self._summaries.setdefault((part, _name(graph), _name(method)), {})
            of_method[int(seed)] = json.loads(path.read_text())

    def graphs(self) -> list[str]:
        return list(dict.fromkeys(graph for _, graph, _ in self._summaries))

    def methods(self, part: str) -> list[str]:
        return list(dict.fromkeys(method for found, _, method in self._summaries if found == part))

    def scores(self, part: str, graph: str, method: str, key: str = "test_score_at_best_val") -> dict[int, float]:
        """In percent, by seed."""
        found = self._summaries.get((part, graph, method), {})
        return {seed: 100 * summary[key] for seed, summary in found.items()}

    def rounds_to(self, target: float, part: str, graph: str, method: str) -> dict[int, int | None]:
        """By seed, the first round whose validation score (in percent) is at least `target`; None: no round."""
        found: dict[int, int | None] = {}
        for seed in self._summaries.get((part, graph, method), {}):
            folder = self._folder / part / graph.replace(" ", "-") / method.replace(" ", "-") / str(seed)
            rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
            found[seed] = first_round(rows, target / 100)
        return found


def _name(folder: str) -> str:
    return folder.replace("-", " ")


def first_round(rows: Curve, target: float) -> int | None:
    return next((row["round"] for row in rows if row["val_score"] is not None and row["val_score"] >= target), None)


def mean_std(values: Sequence[float]) -> str:
    """With the number of values where they are too few to deviate."""
    if len(values) < 2:
        return f"{values[0]:.1f} (one seed)" if values else "—"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}"


def paired(one: dict[int, float], other: dict[int, float]) -> tuple[float, float, int] | None:
    """(mean difference, its standard error, number of seeds) over the seeds of both; None below two seeds."""
    differences = [one[seed] - other[seed] for seed in one if seed in other]
    if len(differences) < 2:
        return None
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    return statistics.mean(differences), error, len(differences)


def difference(one: dict[int, float], other: dict[int, float]) -> str:
    found = paired(one, other)
    return "—" if found is None else f"{found[0]:+.1f} ± {found[1]:.1f}"


def rounds_text(found: dict[int, int | None]) -> str:
    reached = [round_ for round_ in found.values() if round_ is not None]
    if not found:
        return "—"
    if not reached:
        return "never"
    missed = len(found) - len(reached)
    return f"{statistics.mean(reached):.1f}" + (f" ({missed} of {len(found)} never)" if missed else "")


def tables(runs: Runs) -> str:
    """Markdown: scores, differences, rounds; then the ablation and the axes."""
    sections = [
        ("Test score at the best validation score, %: mean ± standard deviation over seeds", _core(runs, "core")),
        (f"`{PLUS}` minus each: paired by seed, ± standard error", _differences(runs)),
        (f"Rounds to {REACH:.0%} of the best validation score of `{REFERENCE}`", _rounds(runs)),
        ("Best validation score, %", _core(runs, "core", "best_val_score")),
        ("Ingredients: test score at the best validation score, %", _core(runs, "ablation")),
        (f"Ingredients minus `{PLUS}`: paired by seed, ± standard error", _ablation_differences(runs)),
        ("One axis at a time: test score at the best validation score, %", _core(runs, "axes")),
    ]
    return "\n\n".join(f"### {title}\n\n{text}" for title, text in sections) + "\n"


def _grid(runs: Runs, methods: Sequence[str], cell: Callable[[str, str], str]) -> str:
    graphs = runs.graphs()
    lines = [f"| | {' | '.join(graphs)} |", "|---|" + "---|" * len(graphs)]
    lines += [f"| {method} | {' | '.join(cell(graph, method) for graph in graphs)} |" for method in methods]
    return "\n".join(lines)


def _core(runs: Runs, part: str, key: str = "test_score_at_best_val") -> str:
    def cell(graph: str, method: str) -> str:
        return mean_std(list(runs.scores(part, graph, method, key).values()))

    return _grid(runs, runs.methods(part), cell)


def _differences(runs: Runs) -> str:
    def cell(graph: str, method: str) -> str:
        return difference(runs.scores("core", graph, PLUS), runs.scores("core", graph, method))

    return _grid(runs, RIVALS, cell)


def _ablation_differences(runs: Runs) -> str:
    def cell(graph: str, method: str) -> str:
        return difference(runs.scores("ablation", graph, method), runs.scores("core", graph, PLUS))

    return _grid(runs, runs.methods("ablation"), cell)


def _rounds(runs: Runs) -> str:
    def cell(graph: str, method: str) -> str:
        reference = runs.scores("core", graph, REFERENCE, "best_val_score")
        if not reference:
            return "—"
        target = REACH * statistics.mean(reference.values())
        return rounds_text(runs.rounds_to(target, "core", graph, method))

    return _grid(runs, runs.methods("core"), cell)
