"""`llcg help` and `llcg COMMAND --help`: every command and every topic, and messages that name nothing but these."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import llcg_dist
from llcg_dist.cli.help import pages
from llcg_dist.cli.main import run
from llcg_dist.cli.usage import USAGE, USAGES

SOURCES = Path(llcg_dist.__file__).parent
ROOT = Path(__file__).parents[3]


def messages(path: Path) -> Iterator[str]:
    """The strings of a file that a user may read: all but the docstrings of modules, classes and functions."""
    tree = ast.parse(path.read_text())
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, owners) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


MESSAGES = [(path, text) for path in sorted(SOURCES.rglob("*.py")) for text in messages(path)]
MESSAGES += [(path, path.read_text()) for path in sorted((ROOT / "conf").rglob("*.yaml"))]


def test_messages_name_no_file_that_an_installed_package_lacks() -> None:
    files = re.compile(r"(?<![\w/.])(?:docs|launch|conf|bench|studies|tests)/[\w/]*\w\.\w+")
    assert [(path.name, found[0]) for path, text in MESSAGES if (found := files.search(text))] == []


def test_the_topics_that_messages_name_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    named = {topic for _, text in MESSAGES for topic in re.findall(r"llcg help ([a-z]\w*)", text)}
    assert {"graph", "hosts", "methods"} <= named
    for topic in named:
        assert run(["help", topic]) == 0, topic


def commands(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Those that `llcg` itself says it has."""
    run(["nothing"])
    listed = re.search(r"one of (.*) \(llcg --help\)", capsys.readouterr().err)
    assert listed
    return listed[1].split(", ")


def test_every_command_has_its_usage_and_stands_in_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands(capsys) == list(USAGES)
    for command in USAGES:
        assert f"\n  llcg {command} " in USAGE
        assert run([command, "--help"]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith(f"usage: llcg {command} ")
        assert ("\nKeys, and their values" in shown) == (command in ("train", "partition"))


def test_help_lists_all_pages(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help"]) == 0
    shown = capsys.readouterr().out
    assert set(pages()) == {path.stem for path in (ROOT / "docs").rglob("*.md")}
    assert all(f"\n  {topic} " in shown for topic in pages())


def test_a_page_points_to_others_by_the_command_that_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "architecture"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# Architecture\n")
    assert "`llcg help diagnostics`" in shown
    assert ".md)" not in shown
    assert "![" not in shown


@pytest.mark.parametrize(
    ("topic", "beginning"),
    [("docs/graph.md", "# Data\n"), ("doctor", "usage: llcg doctor"), ("experiment", "experiment=figures/fig10_mlp ")],
)
def test_what_else_is_a_topic(topic: str, beginning: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", topic]) == 0
    assert capsys.readouterr().out.startswith(beginning)


def test_a_topic_that_is_nearly_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "securty"]) == 2
    assert capsys.readouterr().err.endswith("`llcg help` lists them; did you mean security?\n")
