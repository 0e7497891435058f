"""README repeats figures of the studies: those that stand there now."""

import json
import re

import pytest

from tests.helpers.jobs import REPOSITORY
from tests.helpers.pages import DOCS

README = (REPOSITORY / "README.md").read_text()
GRAPHS = {"Amazon-Computers": "computers", "Cora": "cora", "Tolokers": "tolokers", "WordNet": "wordnet"}
METHODS = {"single machine": "single"}
NUMBER = r"(\d+\.\d)"


def cells(line: str) -> list[str]:
    return [cell.strip(" *") for cell in line.strip().strip("|").split("|")]


def published(page: str, name: str) -> list[list[str]]:
    """The rows of a table of the studies."""
    text = (DOCS / "studies" / page).read_text()
    table = text.partition(f"<!-- bench:{name} -->")[2].partition(f"<!-- /bench:{name} -->")[0]
    return [cells(line) for line in table.splitlines() if line.startswith("|")]


def judged() -> dict[tuple[str, str], str]:
    """{(graph, method): test score} of eight machines."""
    return {(row[0], row[2]): row[3] for row in published("accuracy.md", "plus") if row[1] == "8"}


def claimed(bench: str, what: str) -> float:
    claims = json.loads((REPOSITORY / "bench" / "results.json").read_text())[bench]["claims"]
    [median] = [claim["found"]["median"] for claim in claims if claim["what"] == what]
    return float(median)


def test_scores_are_those_of_the_study() -> None:
    table = README.partition("| method | Amazon-Computers |")[2].partition("\n\n")[0]
    graphs, scores = list(GRAPHS.values()), judged()
    rows = [cells(line) for line in table.splitlines()[2:]]
    assert len(rows) == 5
    for method, *found in rows:
        assert found[: len(graphs)] == [scores[graph, METHODS.get(method, method)] for graph in graphs], method


def test_what_the_server_has_alone() -> None:
    [alone] = re.findall(rf"`server_only`[^`]*?{NUMBER}, {NUMBER},\s+{NUMBER}\s+and\s+{NUMBER}", README)
    assert list(alone) == [judged()[graph, "server_only"].split()[0] for graph in GRAPHS.values()]


def test_what_better_parts_bring_alone() -> None:
    [found] = re.findall(rf"`psgd_pa` on [^`]*?{NUMBER}, {NUMBER} and {NUMBER} on the first three graphs", README)
    heading, *rows = published("performance.md", "parts")
    score = heading.index("psgd_pa")
    on_clusters = {row[0]: float(row[score].split()[0]) for row in rows if row[1] == "clusters"}
    first_three = list(GRAPHS.values())[:3]
    assert [float(value) for value in found] == [round(on_clusters[graph], 1) for graph in first_three]


@pytest.mark.parametrize(
    ("words", "bench", "what", "digits"),
    [
        (r"a local step is ([\d.]+) times as fast as DGL", "local_step", "hidden 256: DGL's loop / llcg_dist", 1),
        (
            r"([\d.]+) times sooner than full synchronisation",
            "slow_network",
            "100 Mbit/s: llcg reaches the target so many times sooner than full_sync",
            0,
        ),
    ],
)
def test_ratios_are_those_of_the_benches(words: str, bench: str, what: str, digits: int) -> None:
    [shown] = re.findall(words, README)
    assert float(shown) == round(claimed(bench, what), digits)
