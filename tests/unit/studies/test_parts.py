"""studies.parts: which runs a selection makes, and when stream's parts count as below METIS's."""

from pathlib import Path

from studies.parts import METHODS, METIS, STREAM, Scores, Study, stream_claims, stream_table

from llcg_dist.config.compose import load_config
from llcg_dist.config.partition import PartitionMethod


def scores(stream: list[float], metis: list[float]) -> Scores:
    of_way = {STREAM: dict(enumerate(stream)), METIS: dict(enumerate(metis))}
    return {("computers", way, method): of_way[way] for way in of_way for method in METHODS}


def test_a_selection_runs_nothing_else() -> None:
    study = Study(["computers"], [STREAM, METIS], range(10, 12), Path("data"), Path("out"))
    runs = study.runs()
    assert len(runs) == 2 * len(METHODS) * 2
    settings = load_config(runs[Path("out/computers-stream-llcg-seed11")])
    assert settings.partition.method == PartitionMethod.stream
    assert settings.partition.seed == settings.seed == 11
    assert load_config(runs[Path("out/computers-metis-llcg-seed11")]).partition.method == PartitionMethod.metis


def test_below_by_more_than_two_standard_errors_breaks_the_claim() -> None:
    noise = scores([80.0, 82.0, 81.0], [81.0, 81.5, 81.2])
    assert all(claim.holds for claim in stream_claims(noise, ["computers"]))
    worse = scores([80.0, 80.1, 80.2], [81.0, 81.2, 81.1])
    assert [claim.holds for claim in stream_claims(worse, ["computers"])] == [False] * len(METHODS)
    assert "-1.0 ± 0.1" in stream_table(worse, ["computers"])
