"""docs/concepts/algorithm.md quotes lines of the code beside those of Algorithm 2: they are there, word for word."""

import re

from tests.helpers.jobs import REPOSITORY
from tests.helpers.pages import DOCS

PACKAGE = REPOSITORY / "src" / "llcg_dist"
ROW = re.compile(r"^\| [\d, –]+ \|.*\| `([^`]+)` \|$")
"""A row of a table: lines of Algorithm 2, what they say, the code."""


def quoted() -> list[tuple[list[str], list[str]]]:
    """For each table the files that the line above it names, and the code that it quotes."""
    tables: list[tuple[list[str], list[str]]] = []
    for line in (DOCS / "concepts" / "algorithm.md").read_text().splitlines():
        if line.endswith(":") and (files := re.findall(r"`([\w/]+\.py)`", line)):
            tables.append((files, []))
        elif row := ROW.match(line):
            tables[-1][1].append(row[1])
    return tables


def test_the_quoted_lines_are_there_in_their_order() -> None:
    tables = quoted()
    assert [len(code) for _, code in tables] == [5, 4]
    for files, quotes in tables:
        text = "\n".join((PACKAGE / file).read_text() for file in reversed(files))
        lines = [line.partition("  #")[0].strip() for line in text.splitlines()]
        missing = [code for code in quotes if code not in lines]
        assert missing == [], files
    (loop,), quotes = tables[0]
    places = [(PACKAGE / loop).read_text().index(code) for code in quotes]
    assert places == sorted(places)
