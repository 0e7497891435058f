"""Writes the list of docs/studies/index.md: every table and picture, the command that made it, and the commit.

    python -m studies.made_at

The commit is the first with the table or the picture as it is now, so run this after it is committed. Of a section
without markers the tables count, not the words around them.
"""

import functools
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.harness import put_section, table

from llcg_dist.records.console import say

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
INDEX = DOCS / "studies" / "index.md"
NOT_MEASURED = ("", "Not measured yet.")


@dataclass(frozen=True)
class Result:
    """Tables and pictures of one command. `places`: the beginning of a heading of the page, the marker `bench:NAME` of
    any page, or the file of a picture."""

    what: str
    page: str
    places: tuple[str, ...]
    command: str

    @property
    def shown_in(self) -> Path:
        """The page."""
        marker = f"<!-- {self.places[0]} -->"
        return next((page for page in DOCS.rglob("*.md") if marker in page.read_text()), DOCS / self.page)


def _figure(what: str, names: str, *places: str) -> Result:
    """A figure of the paper in small: its table and its pictures."""
    return Result(what, "studies/figures.md", places, f"python -m studies.figures --only {names}")


REPRODUCE, ACCURACY, PAYS = "studies/reproduce.md", "studies/accuracy.md", "studies/pays.md"
DIAGNOSTICS, PERFORMANCE = "studies/diagnostics.md", "studies/performance.md"
RESULTS = [
    Result("The demo's methods by round", REPRODUCE, ("demo.png",), "make demo"),
    Result("The demo's claim over seeds", REPRODUCE, ("The demo's claim",), "python -m studies.seeds"),
    Result("Bytes at the paper's size", REPRODUCE, ("Bytes a round",), "python -m bench.bytes"),
    Result("Amazon-Computers, eight machines", REPRODUCE, ("Amazon-Computers",), "python -m studies.seeds …"),
    Result("Real graphs, one machine", REPRODUCE, ("Real graphs",), "python -m studies.real_graphs --data F"),
    Result("Accuracy at the same bytes", ACCURACY, ("bench:accuracy",), "make accuracy DATA=F"),
    Result("Accuracy, the picture", ACCURACY, ("accuracy.svg",), "python -m studies.pictures"),
    Result("Choosing llcg_plus at first", ACCURACY, ("How the ingredients",), "llcg train …, seeds 0 and 1"),
    Result("llcg_plus, judged", ACCURACY, ("bench:plus",), "python -m studies.plus --data F --judge --publish"),
    Result(
        "llcg_plus with sixteen machines",
        ACCURACY,
        ("bench:plus_16",),
        "python -m studies.plus --data F --judge --publish --machines 16 --seeds 2",
    ),
    Result("Choosing llcg_plus again", ACCURACY, ("bench:plus_tuning",), "python -m studies.plus --data F --publish …"),
    Result("When several machines pay", PAYS, ("bench:map", "pays.svg"), "python -m studies.map --data F --publish"),
    Result(
        "When they pay: parts, longer rounds, classes",
        PAYS,
        ("bench:map_parts",),
        "python -m studies.map --data F --publish map_parts …",
    ),
    Result("Whether the advice is right", PAYS, ("bench:advice",), "python -m studies.advice --data F"),
    Result("S=auto", DIAGNOSTICS, ("bench:auto_s",), "python -m studies.auto_s --data F --publish"),
    Result("S=auto, the picture", DIAGNOSTICS, ("auto_s.svg",), "python -m studies.pictures"),
    _figure(
        "Figure 1",
        "fig1_machines",
        *("Figure 1:", "fig1_machines_memory.png", "fig1_machines_seconds_by_phase.png"),
    ),
    _figure("Figure 2", "fig2_ggs_bytes", "fig2_ggs_bytes.png"),
    _figure("Figure 4 a-d", "fig4_curves", "Figures 2 and 4", "fig4_curves.png"),
    _figure("Figure 4 e-h", "fig4_loss fig4_bytes", "fig4_loss.png", "fig4_bytes.png"),
    _figure("Figure 5", "fig5_k", "Figure 5", "fig5_k_score_by_round.png", "fig5_k_sweep_llcg_K.png"),
    _figure(
        "Figure 6",
        "fig6_ratio_s",
        *("Figure 6", "fig6_ratio_s_heat_llcg_S_fanout.png", "fig6_ratio_s_score_by_round.png"),
    ),
    _figure("Figures 7, 8", "fig7_8_correction_neighbours", "Figures 7", "fig7_8_correction_neighbours.png"),
    _figure("Figure 9", "fig9_minibatch", "Figure 9", "fig9_minibatch.png"),
    _figure(
        "Figure 10",
        "fig10_yelp fig10_mlp fig10_products",
        *("Figure 10", "fig10_yelp.png", "fig10_mlp.png", "fig10_products.png"),
    ),
    _figure(
        "Figure 11",
        "fig11_large",
        *("Figure 11", "fig11_large_score_by_round.png", "fig11_large_score_by_compute.png"),
    ),
]

BENCHES = {
    "local_step": ("A local step beside DGL and PyG", "python -m bench.local_step"),
    "labor_curve": ("LABOR learns as neighbour sampling does", "python -m studies.labor_curve"),
    "sampling": ("Samplers", "python -m bench.sampling"),
    "parts": ("Scores by parts", "python -m studies.parts --data F --seeds 3 …"),
    "stream_cuts": ("Cut edges of stream beside METIS", "python -m studies.parts --data F --cuts"),
    "stream_parts": ("Stream beside METIS", "python -m studies.parts --data F --ways stream metis"),
    "own_models": ("PyG modules, scores", "python -m studies.own_models --data F"),
    "own_model": ("PyG modules, time", "python -m bench.own_model"),
    "evaluation": ("An evaluation", "python -m bench.evaluation"),
    "precision": ("bfloat16, scores", "python -m studies.precision --data F"),
    "exchange": ("An exchange beside Gloo and Flower", "python -m bench.exchange"),
    "star": ("Star and tree", "python -m bench.star"),
    "sealing": ("Sealing", "python -m bench.sealing"),
    "exchange_accuracy": ("Rounded messages, scores", "python -m studies.exchange_accuracy --data F"),
    "rounds": ("A round", "python -m bench.rounds"),
    "waiting": ("Whether machines wait", "python -m bench.waiting"),
    "beside": ("Correction beside", "python -m studies.beside"),
    "go_on": ("Going on without a machine", "python -m bench.go_on"),
    "losses": ("Machines that are lost", "python -m studies.losses"),
    "stragglers": ("A slow machine", "python -m studies.stragglers"),
    "startup": ("Starting a job", "python -m bench.startup"),
    "scale": ("A graph of ogbn-products' size", "python -m bench.scale"),
    "tables": ("Tables with text for ids", "python -m bench.tables"),
    "order": ("Nodes in the order of parts", "python -m bench.order"),
    "extrapolate": ("Larger graphs, computed", "python -m bench.extrapolate"),
    "largest": ("The largest graph, computed", "python -m studies.largest"),
    "slow_network": ("Time to accuracy on slow networks", "python -m bench.slow_network"),
    "peers": ("Beside DistDGL, Flower, DDP", "python -m bench.peers"),
}
"""{marker in performance.md: (what, command)}"""

RESULTS += [Result(what, PERFORMANCE, (f"bench:{name}",), command) for name, (what, command) in BENCHES.items()]
RESULTS += [
    Result("Slow networks, the picture", PERFORMANCE, ("slow_network.png",), "python -m bench.slow_network"),
    Result("Memory by machines, the picture", PERFORMANCE, ("memory.svg",), "python -m studies.pictures"),
    Result("The largest graph, the picture", PERFORMANCE, ("largest.svg",), "python -m studies.largest"),
    Result("Lost machines, the picture", PERFORMANCE, ("losses.svg",), "python -m studies.pictures"),
    Result("A machine that lies", "", ("bench:poisoning",), "python -m studies.poisoning --data F"),
    Result("A report", "guides/report.md", ("report.png",), "llcg report runs"),
]

DRAWN = {"beside.svg", "correction.svg", "cut.svg", "k_rho_s.svg", "rooms.svg", "round.svg", "sent.svg"}
"""Pictures that explain and show no measurement."""


def main() -> None:
    rows = []
    for result in RESULTS:
        commits = dict.fromkeys(made_at(result, place) for place in result.places)
        rows.append([_link(result), f"`{result.command}`", ", ".join(commits)])
    put_section(INDEX, "index", table(["table or picture", "command", "commit"], rows))
    say(INDEX.read_text())


def made_at(result: Result, place: str) -> str:
    """The first commit that has what is shown there now."""
    path = DOCS / "figures" / place if is_picture(place) else result.shown_in
    now = content_of(path.read_bytes(), place) if path.exists() else ""
    if now in NOT_MEASURED:
        return "not measured yet"
    commits = [commit for commit, name in _history(path) if content_of(_file_at(commit, name), place) == now]
    return commits[-1] if commits else "not committed"


def is_picture(place: str) -> bool:
    return place.endswith((".png", ".svg"))


def content_of(file: bytes, place: str) -> str | bytes | None:
    """What of a file is shown there: all of a picture, a section between markers, the tables below a heading."""
    if is_picture(place):
        return file
    text = re.sub(r"\]\((?:\.\./)*", "](", file.decode())  # pages have moved since, and their links with them
    if place.startswith("bench:"):
        found = re.search(rf"<!-- {place} -->\n(.*?)<!-- /{place} -->", text, re.DOTALL)
        return found[1].strip() if found else None
    _, heading, rest = text.partition(f"\n## {place}")
    below = rest.partition("\n## ")[0]
    return "\n".join(line for line in below.splitlines() if line.startswith("|")) if heading else None


@functools.cache
def _file_at(commit: str, name: str) -> bytes:
    """Empty where the commit removes it."""
    return subprocess.run(["git", "show", f"{commit}:{name}"], cwd=ROOT, capture_output=True).stdout


@functools.cache
def _history(path: Path) -> tuple[tuple[str, str], ...]:
    """(commit, the file's name then), newest first."""
    command = ["git", "log", "--follow", "--format=%h", "--name-only", "--", str(path.relative_to(ROOT))]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return tuple(zip(lines[::2], lines[1::2], strict=True))


def _link(result: Result) -> str:
    """To the section of the page that shows the result."""
    page = os.path.relpath(result.shown_in, INDEX.parent)
    return f"[{result.what}]({page}{_anchor(result.shown_in.read_text(), result.places[0])})"


def _anchor(text: str, place: str) -> str:
    """Of the heading above the place; empty where there is none."""
    sign = place if is_picture(place) or place.startswith("bench:") else f"\n## {place}"
    before, found, rest = text.partition(sign)
    if sign.startswith("\n"):
        before += sign + rest.partition("\n")[0]
    headings = re.findall(r"^#{2,3} (.+)$", before, re.MULTILINE) if found else []
    return f"#{slug(headings[-1])}" if headings else ""


def slug(heading: str) -> str:
    """As Python-Markdown and GitHub make it of a heading in plain words."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


if __name__ == "__main__":
    main()
