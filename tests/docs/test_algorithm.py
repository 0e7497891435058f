"""docs/concepts/algorithm.md quotes lines of the code beside those of Algorithm 2: they are there, word for word."""

import re

import llcg_dist
from tests.helpers.jobs import REPOSITORY
from tests.helpers.pages import DOCS

PACKAGE = REPOSITORY / "src" / llcg_dist.__name__
ROW = re.compile(r"^\| *[\d, –]*\|.*\| `([^`]+)` \| `([^`]+)` \|$", re.MULTILINE)
"""A row of the table: the code, and its file."""


def test_the_quoted_lines_are_there() -> None:
    rows = ROW.findall((DOCS / "concepts" / "algorithm.md").read_text())
    assert len(rows) >= 8
    for code, file in rows:
        lines = [line.partition("  #")[0].strip() for line in (PACKAGE / file).read_text().splitlines()]
        assert code in lines, f"{file} has no line {code!r}"


def test_they_stand_in_the_order_of_the_round() -> None:
    rows = ROW.findall((DOCS / "concepts" / "algorithm.md").read_text())
    loop = (PACKAGE / "job" / "round_loop.py").read_text()
    places = [loop.index(code) for code, file in rows if file == "job/round_loop.py"]
    assert places == sorted(places)
