"""`llcg help TOPIC` and `llcg COMMAND --help`: pages of the documentation, which come with the package, the usage of
commands, and the presets of a group."""

import importlib.resources
import itertools
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from llcg_dist.cli.describe import groups, print_settings
from llcg_dist.cli.usage import LISTS_KEYS, OWN_FILES, USAGE, USAGES
from llcg_dist.config.keys import did_you_mean
from llcg_dist.config.own_files import preset_folders
from llcg_dist.errors import UserError
from llcg_dist.records.console import say

FOLDERS = {
    "": "",
    "start": "Start",
    "guides": "Guides",
    "concepts": "Concepts",
    "reference": "Reference",
    "studies": "Studies",
}
"""{folder of docs: its title}, in the order of the site."""

_GENERATED = "reference/settings.md"
"""The page of the site that stands in no file: it is made of what `llcg train --help` prints."""
_LINK = re.compile(r"\[([^\]]*)\]\(([\w./]+\.md)(?:#[^)]*)?\)")
_USAGE = re.compile(r"^<!-- usage: (\w+) -->$", re.MULTILINE)
_OBJECT = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
_PICTURE = re.compile(r"^!\[.*\]\(.*\)\n", re.MULTILINE)


def print_usage(command: str, arguments: Sequence[str] = ()) -> int:
    """Prints the help of a command; that of `train` and `partition` with the values which the arguments lead to."""
    say(USAGES[command])
    if command in LISTS_KEYS:
        say(f"\n{OWN_FILES}")
        print_settings(arguments)
    return 0


def show_help(arguments: Sequence[str]) -> int:
    """Shows a page, the help of a command or the presets of a group; without a topic, the list of them."""
    if not arguments:
        say(f"{USAGE}\n\n{OWN_FILES}\n\nTopics (llcg help TOPIC):\n")
        for folder, title in FOLDERS.items():
            if title:
                say(f"\n  {title}")
            for topic, page in pages().items():
                if page.parent == _root() / folder:
                    say(f"    {topic.ljust(16)} {page.read_text().partition(chr(10))[0].lstrip('# ')}")
        say(f"\nPresets of a group: {', '.join(group for group in groups() if group not in USAGES)}")
        return 0
    topic = arguments[0].removesuffix(".md").removeprefix("docs/")
    if topic not in pages():
        topic = topic.rpartition("/")[2]
    if topic in pages():
        _show_page(topic)
    elif topic in USAGES:
        print_usage(topic)
    elif topic in groups():
        _show_presets(topic)
    else:
        known = [*pages(), *USAGES, *groups()]
        raise UserError(f"help {topic}: no such topic; `llcg help` lists them{did_you_mean(topic, known)}")
    return 0


def pages() -> dict[str, Path]:
    """The pages of the documentation by topic: a page's name, with its folder where a page before has the same."""
    found: dict[str, Path] = {}
    for folder in FOLDERS:
        for path in sorted((_root() / folder).glob("*.md")):
            found[f"{folder}/{path.stem}" if path.stem in found else path.stem] = path
    return found


def presets(group: str) -> list[tuple[str, str]]:
    """(`group=choice`, the first sentence of the comment that its file begins with) of every choice of a group."""
    rows = []
    for name in groups()[group]:
        file = next(path for folder in preset_folders() if (path := folder / group / f"{name}.yaml").exists())
        lines = itertools.takewhile(lambda line: line.startswith("#"), file.read_text().splitlines())
        comment = " ".join(line[1:].strip() for line in lines if "@package" not in line)
        rows.append((f"{group}={name}", re.split(r"(?<=[^.]\.) ", comment)[0]))
    return rows


def with_usages(text: str) -> str:
    """A page with what `llcg COMMAND --help` says in place of `<!-- usage: COMMAND -->`."""
    return _USAGE.sub(lambda found: f"```text\n{USAGES[found[1]]}\n```", text)


def _root() -> Path:
    return Path(str(importlib.resources.files("llcg_dist.docs")))


def _show_page(topic: str) -> None:
    """The page as Markdown, drawn where stdout is a terminal, and what else has its name."""
    page = pages()[topic]
    text = with_usages(_PICTURE.sub("", page.read_text()))
    text = _OBJECT.sub(r"`python -m pydoc \1`", text)
    text = _LINK.sub(lambda link: _command_for_link(link, page), text).rstrip()
    if topic in USAGES:
        text += f"\n\nOptions: `llcg {topic} --help`"
    if not sys.stdout.isatty():
        say(text)
    else:
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    if topic in groups():
        say("\nPresets:\n")
        _show_presets(topic)


def _command_for_link(link: re.Match[str], page: Path) -> str:
    """A link to another page, as the command that shows it."""
    text, target = link.groups()
    path = Path(os.path.normpath(page.parent / target))
    topic = next((topic for topic, other in pages().items() if other == path), None)
    command = f"`llcg help {topic}`" if topic else "`llcg train --help`"
    if not topic and path != _root() / _GENERATED:
        return link[0]
    return command if text.endswith(".md") else f"{text} ({command})"


def _show_presets(group: str) -> None:
    rows = presets(group)
    width = max(len(choice) for choice, _ in rows)
    for choice, said in rows:
        say(f"{choice.ljust(width)}  {said}".rstrip())
