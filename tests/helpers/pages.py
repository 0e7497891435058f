"""The code blocks of a page of docs/, and the shell script that they make when a reader pastes them from top to bottom.

A `bash` block runs in one shell with all others of the page; a `python` block runs as a script in the same folder; a
block with title="FILE" is written to that file; a `text` block shows output. A line `<!-- not run: REASON -->` above a
block says why it does not run here.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.jobs import REPOSITORY

DOCS = REPOSITORY / "docs"
RUN = ("bash", "python")

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*) *(?P<options>.*)$")
_TITLE = re.compile(r'title="([^"]+)"')
_NOT_RUN = re.compile(r"^ *<!-- not run: (.+) -->$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its first line is `line` of the page; `title` and `not_run` are empty where there is none."""

    line: int
    language: str
    title: str
    not_run: str
    text: str

    @property
    def runs(self) -> bool:
        return self.language in RUN and not self.title and not self.not_run


def blocks_of(page: Path) -> Iterator[Block]:
    lines = page.read_text().splitlines()
    at = 0
    while at < len(lines):
        opened = _FENCE.match(lines[at])
        if opened:
            indent = opened["indent"]
            end = next((n for n in range(at + 1, len(lines)) if lines[n].rstrip() == f"{indent}```"), None)
            assert end is not None, f"{page}:{at + 1}: a block without an end"
            title = _TITLE.search(opened["options"])
            reason = _NOT_RUN.match(lines[at - 1]) if at else None
            text = "".join(f"{line.removeprefix(indent)}\n" for line in lines[at + 1 : end])
            yield Block(at + 2, opened["language"], title[1] if title else "", reason[1] if reason else "", text)
            at = end
        at += 1


def write_script(page: Path, scratch: Path) -> Path:
    """A shell script that does what the page says; the contents of files and Python blocks lie beside it."""
    steps = ["set -euo pipefail"]
    for block in blocks_of(page):
        place = f"{page.name}:{block.line}"
        if block.not_run:
            continue
        if block.title:
            source = _put(scratch / f"{block.line}.file", block.text)
            steps.append(f"mkdir -p -- {shlex.quote(str(Path(block.title).parent))}")
            steps.append(f"cp -- {source} {shlex.quote(block.title)}")
        elif block.runs:
            steps.append(f"echo '#### {place}' | tee /dev/stderr")
        if block.runs and block.language == "python":
            source = _put(scratch / f"{block.line}.py", block.text)
            steps.append(f"cp -- {source} block_{block.line}.py && python block_{block.line}.py")
        elif block.runs:
            steps.append(block.text.rstrip("\n"))
    return Path(_put(scratch / "page.sh", "\n".join(steps) + "\n"))


def _put(file: Path, text: str) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return shlex.quote(str(file))
