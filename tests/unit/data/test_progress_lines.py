"""Long work says how far it is, short work nothing."""

import pytest

from llcg_dist.data.progress_lines import ProgressLines


def test_a_line_every_ten_seconds_with_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 4.0, 12.0, 13.0, 40.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    said: list[str] = []
    progress = ProgressLines("reading edges.npy", 600_000_000, "edges", said.append)
    for done in (100_000_000, 20_000_000, 30_000_000, 250_000_000):
        progress.add(done)
    assert said == [
        "reading edges.npy: 20 %, 10.00 million edges a second, 48 s left",
        "reading edges.npy: 67 %, 10.00 million edges a second, 20 s left",
    ]


def test_few_and_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 100.0, 200.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    said: list[str] = []
    progress = ProgressLines("reading", 1_000_000, "nodes", said.append)
    progress.add(10_000)
    progress.add(90_000)
    assert said[0] == "reading: 1 %, 100 nodes a second, 2.8 h left"
    assert said[1] == "reading: 10 %, 500 nodes a second, 30 min left"
