"""The code blocks of Start and Guides run as they stand, from top to bottom, each page in a fresh folder."""

import re
from pathlib import Path

import pytest

from tests.helpers.jobs import finish, start
from tests.helpers.pages import DOCS, RUN, blocks_of, write_script

PAGES = [path for folder in ("start", "guides") for path in sorted((DOCS / folder).glob("*.md"))]
FIRST = ("start/install.md", "start/tutorial.md", "start/python.md")
"""Pages whose blocks run in `make test`; those of all others run in `make test-full`."""

LIMIT = 240
LIST_ITEM = re.compile(r"[-*] |\d+\. |!!! ")


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def runnable_pages() -> list[object]:
    found = [page for page in PAGES if any(block.runs for block in blocks_of(page))]
    marks = {True: (), False: (pytest.mark.full,)}
    return [pytest.param(page, id=name_of(page), marks=marks[name_of(page) in FIRST]) for page in found]


@pytest.mark.parametrize("page", runnable_pages())
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    script = write_script(page, tmp_path / "blocks")
    outcome = finish(start(["bash", str(script)], folder), limit=LIMIT)
    assert outcome.code == 0, f"{outcome.out[-3000:]}\n{outcome.err[-3000:]}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    """Commands and programs run, files have names, and all else is text."""
    unclear = [
        f"{name_of(page)}:{block.line}: {block.language or 'no language'}"
        for block in blocks_of(page)
        if block.language not in (*RUN, "text") and not block.title
    ]
    assert unclear == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_block_hides_from_the_tests(page: Path) -> None:
    """Code that is indented and not fenced would never run."""
    fenced, before, opener, hidden = False, "", "", []
    for at, line in enumerate(page.read_text().splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        if line.startswith("    ") and not before and not fenced and not LIST_ITEM.match(opener):
            hidden.append(f"{name_of(page)}:{at}: {line.strip()}")
        opener = line if line and not line.startswith(" ") else opener
        before = line
    assert hidden == []


def test_the_first_steps_are_run() -> None:
    """The pages that a new user follows have blocks that run."""
    for name in (*FIRST[1:], "guides/graph.md", "guides/method.md", "guides/hosts.md"):
        assert any(block.runs for block in blocks_of(DOCS / name)), name


def test_a_page_is_a_script(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n```bash\nname=world\nmkdir -p in\n```\n\nA file in a list:\n\n"
        '1. this\n\n    ```csv title="in/a.csv"\n    a,b\n    ```\n\n'
        '```python\nprint(open("in/a.csv").read().strip())\n```\n\n```text\nfalse\n```\n\n'
        "<!-- not run: no such host -->\n```bash\nfalse\n```\n\n```bash\necho hello $name\n```\n"
    )
    outcome = finish(start(["bash", str(write_script(page, tmp_path / "blocks"))], tmp_path))
    said = [line for line in outcome.out.splitlines() if not line.startswith("####")]
    assert (outcome.code, said) == (0, ["a,b", "hello world"])
    assert [block.not_run for block in blocks_of(page) if not block.runs] == ["", "", "no such host"]


def test_a_block_that_fails_fails_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```bash\nfalse | cat\necho after\n```\n")
    outcome = finish(start(["bash", str(write_script(page, tmp_path / "blocks"))], tmp_path))
    assert outcome.code == 1
    assert "after" not in outcome.out
