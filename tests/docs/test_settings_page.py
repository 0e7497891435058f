"""The generated reference of the settings has every key of the schema, with its default and its meaning."""

import re

import pytest

from docs.theme.settings_page import EXPERIMENTS, GROUPS, SECTIONS, settings_page
from llcg_dist.cli.describe import groups
from llcg_dist.config.keys import all_keys

SET_BY_GROUP = {"dataset.source", "partition.method", "model.name", "algorithm.name"}
ENTRY = re.compile(
    r"^### `(?P<key>[\w.]+)` \{#(?P<anchor>[\w.-]+)\}\n\n(?P<kind>.+); default (?P<value>.+)\n\n(?P<meaning>.*)$",
    re.MULTILINE,
)


@pytest.fixture(scope="module")
def page() -> str:
    return settings_page()


def test_every_key_has_an_anchor_and_a_meaning(page: str) -> None:
    entries = list(ENTRY.finditer(page))
    assert [entry["key"] for entry in entries if len(entry["meaning"]) < 15] == []
    keys = {key for key in all_keys() if key not in groups() and key not in SECTIONS}
    anchors = [entry["anchor"] for entry in entries]
    assert len(set(anchors)) == len(anchors)
    assert set(anchors) >= keys - SET_BY_GROUP
    assert {entry["key"] for entry in entries} == keys - SET_BY_GROUP
    assert all(f"`{key}`" in page for key in SET_BY_GROUP)


def test_types_choices_and_defaults(page: str) -> None:
    found = {entry["anchor"]: entry for entry in ENTRY.finditer(page)}
    assert (found["algorithm.K"]["kind"], found["algorithm.K"]["value"]) == ("`float`", "`8.0`")
    assert found["algorithm.correction"]["kind"] == "one of `after`, `beside`"
    assert found["evaluate.every"]["kind"] == "`int` or `str`"
    assert found["model.options"]["kind"] == "keys and values"
    assert found["dataset.split-planetoid"]["value"] == "`public`"
    assert "K\\*R steps" in found["algorithm.schedule"]["meaning"]


def test_every_preset_says_what_it_is(page: str) -> None:
    assert {*GROUPS, *EXPERIMENTS} == set(groups())
    for group, names in groups().items():
        for name in names:
            assert re.search(rf"^- `{group}={name}`: \S.{{10}}", page, re.MULTILINE), f"{group}={name}"
