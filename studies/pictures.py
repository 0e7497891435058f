"""What stands at the top of the pages of docs/studies/: pictures of their tables, and performance.md in short.

    python -m studies.pictures

Colours and fonts are the report's. A picture whose table is not there yet is left out.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

from bench.harness import PAGE, RESULTS, put_section
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from llcg_dist.records.console import say
from llcg_dist.report.style import COLOURS, MEMORY_ROLES, SETTINGS

DOCS = Path(__file__).parent.parent / "docs"
METHODS = ("psgd_pa", "ggs", "llcg_paper", "llcg_plus", "server_only", "single")
GREY = "#8c959f"

Table = list[dict[str, str]]


def main() -> None:
    for name, draw in PICTURES.items():
        figure = Figure(layout="constrained", facecolor="white")
        with rc_context(SETTINGS):
            try:
                draw(figure)
            except LookupError as error:
                say(f"{name}: not drawn ({error})")
                continue
            figure.savefig(DOCS / "figures" / f"{name}.svg", metadata={"Date": None})
        say(f"docs/figures/{name}.svg")
    put_section(PAGE, "short", f"\n{in_short()}\n")


def in_short() -> str:
    """The claims that people ask for first, and those that miss their aim, from bench/results.json."""
    parts = json.loads(RESULTS.read_text())
    claims = {(part, claim["what"]): claim for part, content in parts.items() for claim in content["claims"]}
    lines = []
    for text, *names in SHORT:
        values = [f"{claims[name]['found']['median']:.3g}" for name in names]
        lines.append("- " + text.format(*values))
    missed = [f"{part}: {what}" for (part, what), claim in sorted(claims.items()) if claim["holds"] is False]
    return "\n".join([*lines, f"- **Aims that are missed**: {len(missed)}, each marked **no** in its table below."])


SHORT: list[tuple[str, *tuple[tuple[str, str], ...]]] = [
    (
        "**A local step** (hidden 256): DGL's own loop takes {} times as long, PyG's layers over edge_index {} times.",
        ("local_step", "hidden 256: DGL's loop / llcg_dist"),
        ("local_step", "hidden 256: PyG over edge_index / llcg_dist"),
    ),
    (
        "**A slow network** (100 Mbit/s): llcg reaches the target score {} times sooner than ggs, {} times sooner than "
        "full_sync, and at least {} times sooner than DistDGL, whose runs were stopped where they took longer.",
        ("slow_network", "100 Mbit/s: llcg reaches the target so many times sooner than ggs"),
        ("slow_network", "100 Mbit/s: llcg reaches the target so many times sooner than full_sync"),
        ("peers", "100 Mbit/s: llcg reaches the target so many times sooner than distdgl"),
    ),
    (
        "**A graph of ogbn-products' size**: cut in {} GB; a server and eight machines train in {} GB together, of "
        "which a machine's share is {} GB.",
        ("scale", "partition=stream at 1, all its processes, GB"),
        ("scale", "training at 1, all ranks and the launcher, GB"),
        ("scale", "a machine's share at 1, GB"),
    ),
    (
        "**An exchange**: a round of Flower takes {} times as long; sealing every message makes a round at 1000 Mbit/s "
        "{} times as long.",
        ("exchange", "Flower / float32, seconds of a round"),
        ("sealing", "sealed / plain, a round at 1000 Mbit/s"),
    ),
    (
        "**A round**: with an evaluation beside it, it takes {} times as long as without; two machines on two cores "
        "take {} times the steps of one.",
        ("rounds", "a round of 1 machine with evaluation, against without"),
        ("rounds", "steps per second of 2 machines, against 1"),
    ),
]
"""(line, the claims whose medians it names)"""


def accuracy(figure: Figure) -> None:
    """Test scores of the methods on five graphs, each with what its preset brings."""
    rows = {(row["graph"], row["method"]): row for row in read_table("accuracy", "bench:plus", "graph", "method")}
    graphs = list(dict.fromkeys(graph for graph, _ in rows))
    figure.set_size_inches(9.6, 3.1)
    for at, graph in enumerate(graphs, 1):
        axes = figure.add_subplot(1, len(graphs), at, title=graph)
        for x, method in enumerate(METHODS):
            mean, deviation = numbers(rows[graph, method]["test %"])
            colour = COLOURS[method.removesuffix("_paper")]
            face = "white" if method == "llcg_paper" else colour
            axes.errorbar([x], [mean], [deviation], color=colour, marker="o", markersize=6, markerfacecolor=face)
        axes.set_xlim(-0.7, len(METHODS) - 0.3)
        axes.grid(axis="y", color="#e6e8eb")
        axes.set_xticks(range(len(METHODS)), METHODS, rotation=60, ha="right", rotation_mode="anchor")
        axes.set_ylabel("test score, %" if at == 1 else "")


def auto_s(figure: Figure) -> None:
    """The last model's validation score by the correction steps that a round takes."""
    table = read_table("diagnostics", "bench:auto_s", "graph, parts", "S=auto")
    figure.set_size_inches(8.2, 2.7)
    steps = [0, 1, 2, 4, 8]
    for at, row in enumerate(table, 1):
        axes = figure.add_subplot(1, len(table), at, title=row["graph, parts"].replace("-", ", "))
        scores = [numbers(row[f"S={S}"]) for S in steps]
        means, deviations = zip(*scores, strict=True)
        axes.errorbar(steps, means, deviations, color=GREY, marker="o", markersize=3.5, label="fixed S")
        mean, deviation = numbers(row["S=auto"])
        chosen = numbers(row["mean S of auto"])[0]
        axes.errorbar([chosen], [mean], [deviation], color=COLOURS["llcg"], marker="D", label="S=auto")
        axes.set_xticks(steps)
        axes.set_xlabel("correction steps a round")
        axes.set_ylabel("final validation score, %" if at == 1 else "")
        if at == 1:
            axes.legend(loc="lower right")


def memory(figure: Figure) -> None:
    """What a machine holds, by the number of machines."""
    table = read_table("performance", "bench:scale", "P", "beyond it, MB")
    figure.set_size_inches(5.2, 2.8)
    axes = figure.add_subplot(xlabel="machines", ylabel="MB")
    machines = [row["P"] for row in table]
    bare = [numbers(row["a bare rank, MB"])[0] for row in table]
    beyond = [numbers(row["beyond it, MB"])[0] for row in table]
    axes.bar(machines, bare, 0.6, color="#BBBBBB", label="Python and libraries, shared by the ranks of a host")
    axes.bar(
        machines, beyond, 0.6, bare, color=MEMORY_ROLES["peak_rss_mb_machine"][1], label="the largest machine's own"
    )
    axes.set_ylim(0, 1.35 * max(map(sum, zip(bare, beyond, strict=True))))
    axes.legend(loc="upper right")


def losses(figure: Figure) -> None:
    """Points of the test score that lost machines cost, with and without a server that stands in."""
    table = read_table("performance", "bench:losses", "graph", "cost of 2")
    graphs = list(dict.fromkeys(row["graph"] for row in table))
    figure.set_size_inches(7.2, 3.1)
    for at, graph in enumerate(graphs, 1):
        axes = figure.add_subplot(1, len(graphs), at, title=graph, xlabel="machines of eight that are lost")
        for row in (row for row in table if row["graph"] == graph):
            _costs(axes, row)
        axes.axhline(0, color=GREY, linewidth=0.8)
        axes.set_xticks([1, 2])
        axes.set_xlim(0.5, 2.5)
        axes.set_ylabel("cost, points of test score" if at == 1 else "")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _costs(axes: Axes, row: dict[str, str]) -> None:
    means, deviations = zip(*(numbers(row[f"cost of {lost}"]) for lost in (1, 2)), strict=True)
    method, _, how = row["method"].partition(", ")
    stands_in, colour = how == "stand-in", COLOURS[method.split()[0]]
    aside = -0.15 if stands_in else 0.15 if method == "psgd_pa" else 0.0
    drawn = axes.errorbar([1 + aside, 2 + aside], means, deviations, color=colour, fmt="o", label=row["method"])
    drawn.lines[0].set_markerfacecolor(colour if stands_in else "white")


def pays(figure: Figure) -> None:
    """How many times sooner than one machine the methods are at 1,000 Mbit/s, and what the noise scale predicts."""
    table = read_table("pays", "bench:map", "noise scale", "one machine, s (batch)")
    figure.set_size_inches(7.2, 0.8 + 0.36 * len(table))
    axes = figure.add_subplot(xlabel="times sooner than one machine, links of 1,000 Mbit/s", xscale="log")
    heights = range(len(table))[::-1]
    for method in ("llcg", "llcg_plus", "psgd_pa", "ggs", "full_sync"):
        names = [name for name in table[0] if name.partition(",")[0] == method]
        sooner = [max(_times_sooner(row[name]) for name in names) for row in table]
        axes.plot(sooner, heights, "o", color=COLOURS[method], label=f"best of {method}" if names[1:] else method)
    axes.plot(
        [float(row["predicted"]) for row in table], heights, "x", color=GREY, label="predicted by the noise scale"
    )
    axes.axvline(1, color=GREY, linewidth=0.8)
    axes.set_yticks(heights, [f"{row['nodes']}, {row['task']}, P = {row['P']}" for row in table])
    axes.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axes.minorticks_off()
    axes.grid(axis="y", color="#e6e8eb")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _times_sooner(cell: str) -> float:
    """At the network in the middle; 0, which a logarithmic axis leaves out, where the target is never reached."""
    middle = cell.split(" / ")[1]
    return 0.0 if middle == "never" else float(middle)


PICTURES: dict[str, Callable[[Figure], None]] = {
    "accuracy": accuracy,
    "auto_s": auto_s,
    "memory": memory,
    "losses": losses,
    "pays": pays,
}


def read_table(page: str, marker: str, first: str, other: str) -> Table:
    """The first table of a section whose head has these two columns; LookupError where there is none."""
    text = (DOCS / "studies" / f"{page}.md").read_text().partition(f"<!-- {marker} -->")[2]
    for block in filter(None, re.split(r"\n\n+", text.partition("<!-- /")[0].strip())):
        head, *lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        if first in head and other in head:
            return [dict(zip(head, cells, strict=True)) for cells in lines[1:]]
    raise LookupError(f"no table with {first} and {other} in {page}.md")


def numbers(cell: str) -> tuple[float, float]:
    """Mean and deviation of `1.5 ± 0.2`, or the first number and 0."""
    found = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", cell)]
    return found[0], found[1] if "±" in cell else 0.0


if __name__ == "__main__":
    main()
