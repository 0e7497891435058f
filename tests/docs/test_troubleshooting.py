"""The messages that the troubleshooting page quotes are those of the program."""

import ast
import re
from pathlib import Path

import llcg_dist
from tests.helpers.pages import DOCS

PAGE = DOCS / "guides" / "troubleshooting.md"
QUOTED = re.compile(r"^`([^`]*)` \|", re.MULTILINE)


def strings_of_the_program() -> str:
    """The constant strings of all files, those within f-strings included."""
    trees = [ast.parse(path.read_text()) for path in Path(llcg_dist.__file__).parent.rglob("*.py")]
    nodes = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return "\n".join(value for value in nodes if isinstance(value, str))


def test_quoted_messages_are_the_programs() -> None:
    messages, said = QUOTED.findall(PAGE.read_text()), strings_of_the_program()
    assert len(messages) >= 15
    pieces = [(message, piece.strip()) for message in messages for piece in message.split("…")]
    assert [message for message, piece in pieces if piece not in said] == []
