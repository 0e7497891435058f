"""`make docs`: the site is built without a warning, stands alone, and is of a size that people read."""

import importlib.util
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.helpers.jobs import REPOSITORY
from tests.helpers.pages import DOCS

OUTSIDE_STUDIES = [path for path in sorted(DOCS.rglob("*.md")) if "studies" not in path.parts]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("MkDocs is not installed: pip install -c constraints.txt -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=200)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return folder


class _Resources(HTMLParser):
    """The addresses that a browser loads with a page; a link that the reader follows is none of them."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        address = given.get("src") or (given.get("href") if tag == "link" else None)
        if address:
            self.addresses.append(address)


def test_every_page_is_there_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = [path for path in site.rglob("*.html") if path.name != "404.html"]
    assert {path.relative_to(site).with_suffix(".md").as_posix() for path in pages} == {
        *(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")),
        "reference/settings.md",
    }
    assert len(pages) >= 25
    for page in pages:
        for address in _Resources(page).addresses:
            assert not re.match(r"\w+:|/", address), f"{page.name} loads {address}"
            assert (page.parent / address.partition("?")[0].partition("#")[0]).exists(), f"{page.name}: {address}"


def test_pages_outside_studies_are_short() -> None:
    words = {path.relative_to(DOCS).as_posix(): len(path.read_text().split()) for path in OUTSIDE_STUDIES}
    assert sum(words.values()) < 15_000, words
    assert len(words) >= 25


def test_the_first_page_is_short() -> None:
    text = (REPOSITORY / "README.md").read_text()
    assert len(text.splitlines()) < 120
    assert len(text.split()) < 1_200


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda path: path.relative_to(DOCS).as_posix())
def test_lists_are_lists_in_every_reader(page: Path) -> None:
    """Python-Markdown, unlike GitHub, takes a list without an empty line above for more of the paragraph."""
    fenced, before, wrong = False, "", []
    for at, line in enumerate(page.read_text().splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        item = re.match(r"([-*]|\d+\.) ", line)
        if item and not fenced and before.strip() and not re.match(r"([-*]|\d+\.) |\s", before):
            wrong.append(f"{page.name}:{at}: {line[:60]}")
        before = line
    assert wrong == []
