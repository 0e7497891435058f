"""The tables of a report's page, and the files beside it."""

import csv
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any


class _Tables(HTMLParser):
    """Of every table its rows of cells."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.tables[-1][-1][-1] += data


def tables_of(page: Path) -> list[list[dict[str, str]]]:
    """Of every table its rows as {column: text}."""
    found = _Tables(page.read_text()).tables
    return [[dict(zip(head, row, strict=True)) for row in rows] for head, *rows in found]


def numbers_of(page: Path, figure: str) -> list[dict[str, str]]:
    """The rows of the .csv file that a figure's numbers are in."""
    with (page.parent / f"{figure}.csv").open() as file:
        return list(csv.DictReader(file))


def figures_of(page: Path) -> list[str]:
    """The names of the page's figures, in their order."""
    return re.findall(r"<figure id='([^']+)'", page.read_text())
