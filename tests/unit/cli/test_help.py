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
    assert sorted(pages().values()) == sorted((ROOT / "docs").rglob("*.md"))
    assert all(f"\n    {topic} " in shown for topic in pages())
    assert shown.index("\n  Guides\n") < shown.index("\n    graph ") < shown.index("\n  Concepts\n")


def test_a_page_whose_name_another_has_is_found_by_its_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert (pages()["index"], pages()["studies/index"]) == (ROOT / "docs/index.md", ROOT / "docs/studies/index.md")
    for topic in ("studies/index", "docs/studies/index.md"):
        assert run(["help", topic]) == 0
        assert capsys.readouterr().out.startswith("# Studies\n")


def test_a_page_with_the_name_of_a_group_ends_with_its_presets(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "model"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# ")
    assert re.search(r"\n\nPresets:\n\nmodel=appnp +Two linear layers ", shown)


def test_a_page_points_to_others_by_the_command_that_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    linked = 0
    for topic in pages():
        assert run(["help", topic]) == 0
        shown = capsys.readouterr().out
        linked += "`llcg help " in shown
        assert shown.startswith("# ")
        assert not re.search(r"\]\([^)]*\.md|^!\[", shown, re.MULTILINE), topic
    assert linked > 10


def test_the_page_that_is_generated_is_shown_by_a_command_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "reference" / "cli.md"
    page.parent.mkdir()
    page.write_text("# Title\n\n[keys](settings.md#seed), [settings.md](settings.md), [none](../nothing.md)\n")
    monkeypatch.setattr("llcg_dist.cli.help._root", lambda: tmp_path)
    assert run(["help", "cli"]) == 0
    shown = capsys.readouterr().out
    assert shown == "# Title\n\nkeys (`llcg train --help`), `llcg train --help`, [none](../nothing.md)\n"


@pytest.mark.parametrize(
    ("topic", "beginning"),
    [("docs/guides/graph.md", "# "), ("doctor", "usage: llcg doctor"), ("experiment", "experiment=demo ")],
)
def test_what_else_is_a_topic(topic: str, beginning: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", topic]) == 0
    assert capsys.readouterr().out.startswith(beginning)


def test_a_topic_that_is_nearly_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "securty"]) == 2
    assert capsys.readouterr().err.endswith("`llcg help` lists them; did you mean security?\n")
