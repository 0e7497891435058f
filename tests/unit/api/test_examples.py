"""The examples of the docstrings run as they stand, and print what they say."""

import doctest
from pathlib import Path
from typing import Any

import pytest

import llcg_dist

DOCUMENTED = {
    "llcg_dist": llcg_dist.__doc__,
    "fit": llcg_dist.fit.__doc__,
    "load": llcg_dist.load.__doc__,
    "Run": llcg_dist.Run.__doc__,
}


QUICK = {"cluster.backend": "loopback", "logger": "none", "partition": "random", "algorithm.K": 1}


@pytest.fixture
def _quick_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of their own, on loopback, with few rounds and without curves."""
    monkeypatch.chdir(tmp_path)
    fit = llcg_dist.fit

    def quick_fit(*data: Any, **arguments: Any) -> llcg_dist.Run:
        arguments["overrides"] = arguments.get("overrides", {}) | QUICK
        few = {"rounds": min(3, arguments.get("rounds", 3)), "machines": 2}
        return fit(*data, **(arguments | few))

    monkeypatch.setattr(llcg_dist, "fit", quick_fit, raising=False)


@pytest.mark.usefixtures("_quick_jobs")
@pytest.mark.parametrize("name", DOCUMENTED)
def test_docstrings(name: str) -> None:
    """Training prints its progress, so the values are compared and not what is printed."""
    examples = doctest.DocTestParser().get_examples(DOCUMENTED[name] or "")
    assert len(examples) >= 3
    names = {"llcg_dist": llcg_dist}
    for example in examples:
        if example.want:
            assert repr(eval(example.source, names)) == example.want.strip()
        else:
            exec(example.source, names)
