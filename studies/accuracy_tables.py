"""From runs to the tables of docs/studies/accuracy.md: means, deviations, paired differences with standard errors."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from studies.accuracy_grid import GRAPHS, PARTS, REAL, variants
from studies.accuracy_runs import KINDS, Runs

REACH = 0.97
"""The share of single's score whose round is looked for."""
PLUS = "llcg_plus"
"""Always with its own statistics, best; so are all where nothing else is said."""
MUST_NOT_LOSE = ("psgd_pa", "server_only", "llcg")
"""llcg_plus must be below none of them by more than two standard errors."""
BELOW = "▼"


def mean_std(values: Sequence[float]) -> str:
    """With the number of values where they are too few to deviate."""
    if len(values) < 2:
        return f"{values[0]:.1f} (one seed)" if values else "—"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}"


def paired(one: Mapping[int, float], other: Mapping[int, float]) -> tuple[float, float, int] | None:
    """(mean difference, its standard error, number of seeds) over the seeds of both; None below two seeds."""
    differences = [one[seed] - other[seed] for seed in one if seed in other]
    if len(differences) < 2:
        return None
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    return statistics.mean(differences), error, len(differences)


def is_below(found: tuple[float, float, int]) -> bool:
    return found[0] < -2 * found[1]


def difference(one: Mapping[int, float], other: Mapping[int, float]) -> str:
    found = paired(one, other)
    if found is None:
        return next((f"{one[seed] - other[seed]:+.1f} (one seed)" for seed in one if seed in other), "—")
    return f"{found[0]:+.1f} ± {found[1]:.1f}" + (f" {BELOW}" if is_below(found) else "")


def rounds_text(found: Sequence[int | None]) -> str:
    reached = [round_ for round_ in found if round_ is not None]
    if not found:
        return "—"
    if not reached:
        return "never"
    missed = len(found) - len(reached)
    return f"{statistics.mean(reached):.1f}" + (f" ({missed} of {len(found)} never)" if missed else "")


def tables(runs: Runs) -> str:
    """Markdown: what is claimed, scores, differences, rounds; then the ablation and the axes; then the cost."""
    core = [(method, kind) for method, _ in variants("core") for kind in KINDS]
    sections = [
        ("core", "In short", _claims(runs)),
        ("core", "Test score at the best validation score, %, mean ± standard deviation", _scores(runs, "core", core)),
        (
            "core",
            f"`{PLUS}` minus each: paired by seed, ± standard error ({BELOW}: below by more than 2)",
            _ahead(runs, core),
        ),
        ("core", f"Rounds to {REACH:.0%} of the best validation score of single (best)", _rounds(runs, core)),
        ("more", "What it would take to come closer to single: minus `single`", _more(runs)),
        ("ablation", "Ingredients: test score, %", _scores(runs, "ablation", _best("ablation"))),
        ("ablation", "Ingredients: minus the same method without", _ablation(runs)),
        ("axes", "One axis at a time: test score, %", _scores(runs, "axes", _axes())),
        ("axes", f"One axis at a time: `{PLUS}` minus each", _axes_ahead(runs)),
        ("core", "Cost: minutes of one core, and runs", _cost(runs)),
    ]
    there = [f"### {title}\n\n{text}" for part, title, text in sections if runs.all_of(part)]
    return "\n\n".join(there) + "\n"


Row = tuple[str, str]
"""A method and the kind of statistics that it is scored with."""


def _best(part: str) -> list[Row]:
    return [(method, "best") for method, _ in variants(part)]


def _axes() -> list[Row]:
    """llcg with averaged statistics is llcg_paper."""
    return [(method, "average" if method.endswith(" llcg") else "best") for method, _ in variants("axes")]


def _grid(part: str, rows: Sequence[Row], cell: Callable[[str, str, str], str]) -> str:
    graphs = PARTS[part]
    lines = [f"| | {' | '.join(graphs)} |", "|---|" + "---|" * len(graphs)]
    for method, kind in rows:
        lines.append(f"| {method}, {kind} | {' | '.join(cell(graph, method, kind) for graph in graphs)} |")
    return "\n".join(lines)


def _scores(runs: Runs, part: str, rows: Sequence[Row]) -> str:
    return _grid(part, rows, lambda graph, *row: mean_std(list(runs.tests(part, graph, *row).values())))


def _plus(runs: Runs, graph: str) -> dict[int, float]:
    return runs.tests("core", graph, PLUS, "best")


def _ahead(runs: Runs, rows: Sequence[Row]) -> str:
    others = [row for row in rows if row != (PLUS, "best")]
    return _grid("core", others, lambda graph, *row: difference(_plus(runs, graph), runs.tests("core", graph, *row)))


def _rounds(runs: Runs, rows: Sequence[Row]) -> str:
    def cell(graph: str, method: str, kind: str) -> str:
        reference = [record.best_val("best") for record in runs.of("core", graph, "single").values()]
        if not reference:
            return "—"
        target = REACH * statistics.mean(reference)
        return rounds_text([record.first_round(kind, target) for record in runs.of("core", graph, method).values()])

    return _grid("core", rows, cell)


def _more(runs: Runs) -> str:
    def cell(graph: str, method: str, kind: str) -> str:
        part = "core" if method == PLUS else "more"
        return difference(runs.tests(part, graph, method, kind), runs.tests("core", graph, "single", kind))

    return _grid("more", [(PLUS, "best"), *_best("more")], cell)


def _ablation(runs: Runs) -> str:
    def cell(graph: str, method: str, kind: str) -> str:
        base = runs.tests("core", graph, method.split(" + ")[0], kind)
        return difference(runs.tests("ablation", graph, method, kind), base)

    return _grid("ablation", _best("ablation"), cell)


def _on_axis(runs: Runs, axis: str, graph: str, method: str, kind: str) -> dict[int, float]:
    """A method that the axis leaves as it is has its scores in the core."""
    found = runs.tests("axes", graph, f"{axis}, {method}", kind)
    moved = any(name == f"{axis}, {method}" for name, _ in variants("axes"))
    return found if moved else runs.tests("core", graph, method, kind)


AXES_RIVALS = (("psgd_pa", "best"), ("llcg", "average"), ("single", "best"))


def _axes_names() -> list[str]:
    return [*dict.fromkeys(method.split(", ")[0] for method, _ in variants("axes"))]


def _axes_ahead(runs: Runs) -> str:
    def cell(graph: str, method: str, kind: str) -> str:
        axis, rival = method.split(", ")
        return difference(_on_axis(runs, axis, graph, PLUS, "best"), _on_axis(runs, axis, graph, rival, kind))

    return _grid("axes", [(f"{axis}, {rival}", kind) for axis in _axes_names() for rival, kind in AXES_RIVALS], cell)


def _claims(runs: Runs) -> str:
    """Counts for every rival the cells in which llcg_plus is above it, and names those in which it is clearly below."""
    lines = []
    for rival in (*MUST_NOT_LOSE, "server_only S=4", "ggs", "full_sync", "single"):
        cells = {
            f"{graph} ({kind})": paired(_plus(runs, graph), runs.tests("core", graph, rival, kind))
            for graph in GRAPHS
            for kind in KINDS
        }
        lines += _counted(f"against {rival}", cells)
    for rival, kind in AXES_RIVALS:
        cells = {
            f"{graph} ({axis})": paired(
                _on_axis(runs, axis, graph, PLUS, "best"), _on_axis(runs, axis, graph, rival, kind)
            )
            for graph in PARTS["axes"]
            for axis in _axes_names()
        }
        lines += _counted(f"on the axes, against {rival} ({kind})", cells)
    pairs = [(graph, runs.of("core", graph, PLUS), runs.of("core", graph, "psgd_pa")) for graph in GRAPHS]
    both = [(plus[seed], plain[seed]) for _, plus, plain in pairs for seed in plus if seed in plain]
    same = sum(plus.messages() == plain.messages() for plus, plain in both)
    lines.append(f"- the ledger's messages of all rounds equal psgd_pa's in {same} of {len(both)} pairs of runs")
    gaps = [difference(_plus(runs, graph), runs.tests("core", graph, "single", "best")) for graph in REAL]
    lines.append("- against single on the real graphs: " + ", ".join(map(" ".join, zip(REAL, gaps, strict=True))))
    return "\n".join(lines)


def _counted(what: str, cells: Mapping[str, tuple[float, float, int] | None]) -> list[str]:
    """A line of Markdown over the cells that have a paired difference; none where no cell has."""
    found = {name: pair for name, pair in cells.items() if pair}
    if not found:
        return []
    above = sum(pair[0] > 0 for pair in found.values())
    mean = statistics.mean(pair[0] for pair in found.values())
    lost = [name for name, pair in found.items() if is_below(pair)]
    below = f"by more than two standard errors below in {', '.join(lost)}" if lost else "in none below by two"
    return [f"- {what}: above in {above} of {len(found)} cells, {mean:+.1f} on average, {below}"]


def _cost(runs: Runs) -> str:
    lines, total, count = ["| part | minutes | runs |", "|---|---|---|"], 0.0, 0
    for part in PARTS:
        seconds = [record.cpu_seconds() for record in runs.all_of(part)]
        lines.append(f"| {part} | {sum(seconds) / 60:.1f} | {len(seconds)} |")
        total, count = total + sum(seconds), count + len(seconds)
    return "\n".join([*lines, f"| all | {total / 60:.1f} | {count} |"])
