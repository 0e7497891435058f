"""bench.scale: predictions beside what was measured."""

from typing import Any

import pytest
from bench.scale_predicted import Pair, pairs_of, prediction_claims, predictions_table

STAGES = ("ingest", "write the whole graph", "cut", "count cut edges", "write the parts")


def predicted(seconds: float, anonymous: float) -> dict[str, float]:
    return {"seconds": seconds, "cpu": seconds, "anonymous": anonymous, "mapped": 1e9, "disk": 1e9}


def measured(seconds: float, anonymous: float, others: float = 0.0) -> dict[str, Any]:
    peak = {"total": anonymous + 1e9, "anonymous": anonymous, "file": 1e9}
    return {"seconds": seconds, "cpu": seconds / 2, "others": others, "peak": peak, "disk": 3e9}


def figures(seconds: float = 20.0, others: float = 0.0) -> dict[str, Any]:
    names = (*STAGES, "train", "the server", "a machine", "an evaluation", "predict")
    rank = {"total": 2e9, "anonymous": 1e9, "file": 1e9}
    parted = {name: measured(20.0, 1e9) for name in (*STAGES, "cut (stream)")}
    parted["ingest"] = measured(seconds, 1e9, others)
    trained = measured(20.0, 1e9) | {"server": rank, "machine": rank, "cpu_local": 20.0, "cpu_evaluate": 20.0}
    return {
        "predicted": {"stages": {name: predicted(20.0, 1e9) for name in names}, "files": 2e9},
        "partition": parted,
        "train": trained,
        "predict": measured(20.0, 1e9),
    }


def test_small_numbers_are_shown_and_not_judged() -> None:
    assert Pair("time", 1.5, 0.6).error == pytest.approx(1.5)
    assert not Pair("time", 1.5, 0.6).is_judged
    assert Pair("time", 1.0, 5.0).is_judged
    assert not Pair("mapped files", 5e9, 1e9).is_judged
    assert Pair("time", 15.0, 10.0).error == pytest.approx(0.5)
    assert Pair("memory", 0.5e9, 1e9).error == pytest.approx(0.5)
    assert str(Pair("memory", 0.5e9, 1e9)) == "0.50 / 1.00 GB"


def test_the_clock_counts_on_an_idle_host_and_the_cpu_on_others() -> None:
    idle, busy = (pairs_of(figures(others=others))["ingest"][0] for others in (0.1, 30.0))
    assert (idle.measured, idle.unit) == (20.0, "s")
    assert (busy.measured, busy.unit) == (10.0, "CPU s")


@pytest.mark.parametrize(("free", "judged"), [(2e9, True), (1.9e9, False)])
def test_files_that_memory_does_not_hold_are_not_judged(free: float, judged: bool) -> None:
    found = figures()
    found["predicted"]["free_memory"] = free
    for stage in ("ingest", "a machine"):
        [pair] = [pair for pair in pairs_of(found)[stage] if pair.what.startswith("memory with files")]
        assert pair.is_judged == judged


def test_a_claim_for_every_stage() -> None:
    claims = prediction_claims({"1/4": figures(), "1": figures(seconds=40.0)})
    assert len(claims) == 20
    assert [claim.what for claim in claims if not claim.holds] == [
        "1, ingest: the prediction is off by, at the worst (time)"
    ]


def test_short_stages_were_hardly_seen() -> None:
    assert [pair.what for pair in pairs_of(figures(seconds=0.5))["ingest"]] == ["time"]
    assert [pair.what for pair in pairs_of(figures())["ingest"]] == [
        "time",
        "memory",
        "mapped files",
        "memory with files",
        "disk",
    ]


def test_figures_of_older_measurements_have_no_predictions() -> None:
    older = {key: value for key, value in figures().items() if key != "predicted"}
    assert predictions_table({"1": older}) == ""
    assert prediction_claims({"1": older}) == []
    assert "| ingest | time | 20.0 / 40.0 s (0.50) |  |" not in predictions_table({"1": figures(seconds=40.0)})
    assert "| ingest | time | 20.0 / 40.0 s (0.50) |" in predictions_table({"1": figures(seconds=40.0)})
