"""Docstrings of the API as Markdown: a line `name  meaning` is an item of a list, a doctest is a block of code."""

import re
from typing import Any

import griffe

_ITEM = re.compile(r"(?P<name>[\w.]+(?:, [\w.]+)*)  +(?P<meaning>\S.*)")


class PlainDocstrings(griffe.Extension):
    """Rewrites every docstring before mkdocstrings renders it."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    return "\n\n".join(_paragraph(paragraph) for paragraph in docstring.split("\n\n"))


def _paragraph(text: str) -> str:
    lines = text.strip("\n").splitlines()
    if lines and lines[0].startswith(">>>"):
        return "\n".join(["```pycon", *lines, "```"])
    if not any(_ITEM.fullmatch(line) for line in lines):
        return text
    items = []
    for line in lines:
        item = _ITEM.fullmatch(line)
        items.append(f"- `{item['name']}`: {_single_spaced(item['meaning'])}" if item else f"  {line.strip()}")
    return "\n".join(items)


def _single_spaced(text: str) -> str:
    return re.sub(r" {2,}", ": ", text)
