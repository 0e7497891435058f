"""`llcg help TOPIC` and `llcg COMMAND --help`: pages of the documentation, which come with the package, the usage of
commands, and the presets of a group."""

import importlib.resources
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

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?:[\w.]+/)*(\w+)\.md(?:#[^)]*)?\)")
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
        for topic, page in pages().items():
            say(f"  {topic.ljust(14)}{page.read_text().partition(chr(10))[0].lstrip('# ')}")
        say(f"\nPresets of a group: {', '.join(group for group in groups() if group not in USAGES)}")
        return 0
    topic = arguments[0].removesuffix(".md").rpartition("/")[2]
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
    """The pages of the documentation, by topic."""
    folder = Path(str(importlib.resources.files("llcg_dist.docs")))
    return {path.stem: path for path in sorted(folder.rglob("*.md"))}


def _show_page(topic: str) -> None:
    """The page as Markdown, drawn where stdout is a terminal."""
    text = _LINK.sub(_command_for_link, _PICTURE.sub("", pages()[topic].read_text())).rstrip()
    if topic in USAGES:
        text += f"\n\nOptions: `llcg {topic} --help`"
    if not sys.stdout.isatty():
        say(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text))


def _command_for_link(link: re.Match[str]) -> str:
    """A link to another page, as the command that shows it."""
    _, text, topic = link.groups()
    if topic not in pages():
        return link[0]
    return f"`llcg help {topic}`" if text.endswith(".md") else f"{text} (`llcg help {topic}`)"


def _show_presets(group: str) -> None:
    """The choices of a group, each with the first line of the comment that its file begins with."""
    rows = []
    for name in groups()[group]:
        file = next(path for folder in preset_folders() if (path := folder / group / f"{name}.yaml").exists())
        comments = [line[1:].strip() for line in file.read_text().splitlines() if line.startswith("#")]
        said = next((comment for comment in comments if not comment.startswith("@package")), "")
        rows.append((f"{group}={name}", said))
    width = max(len(choice) for choice, _ in rows)
    for choice, said in rows:
        say(f"{choice.ljust(width)}  {said}".rstrip())
