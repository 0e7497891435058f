"""bench/harness.py: figures reach the docs as they were measured."""

import json
from pathlib import Path

import pytest
from bench import harness
from bench.harness import Claim, Spread, interleaved, publish, ratio


def test_contenders_take_turns() -> None:
    turns: list[str] = []
    seconds = interleaved({"a": lambda: turns.append("a"), "b": lambda: turns.append("b")}, repeats=2, warm_up=1)
    assert turns == ["a", "b"] * 3
    assert {name: len(values) for name, values in seconds.items()} == {"a": 2, "b": 2}


def test_a_ratio_pairs_the_turns() -> None:
    assert ratio([2.0, 9.0, 4.0], [1.0, 3.0, 4.0]) == Spread(median=2.0, low=1.0, high=3.0)


@pytest.mark.parametrize(("found", "holds"), [(1.0, False), (1.5, True), (2.0, True)])
def test_a_bound_is_kept_or_not(found: float, holds: bool) -> None:
    assert Claim("faster", Spread.of([found]), at_least=1.5).holds is holds
    assert Claim("slower", Spread.of([3.0 - found]), at_most=1.5).holds is holds


def test_publishing_replaces_its_own_section_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, results = tmp_path / "performance.md", tmp_path / "results.json"
    page.write_text("before\n<!-- bench:a -->\nstale\n<!-- /bench:a -->\n<!-- bench:b -->\nkept\n<!-- /bench:b -->\n")
    monkeypatch.setattr(harness, "PAGE", page)
    monkeypatch.setattr(harness, "RESULTS", results)
    publish("a", r"new \1", [Claim("twice", Spread.of([2.0]), at_least=3)], {"ms": 4})
    text = page.read_text()
    assert "stale" not in text
    assert r"new \1" in text
    assert "kept" in text
    assert "**no**" in text
    assert json.loads(results.read_text())["a"]["claims"][0]["holds"] is False
    with pytest.raises(SystemExit, match="bench:c"):
        publish("c", "text", [])
