"""What the rules make of predicted stages and of what is free."""

from llcg_dist.config.compose import load_config
from llcg_dist.doctor.findings import OK, WARN, Finding
from llcg_dist.doctor.forecast import Forecast, format_seconds
from llcg_dist.doctor.stage_rules import check_stages
from llcg_dist.doctor.stages import CUT, INGEST, PARTS, StageCost
from llcg_dist.doctor.training_stages import EVALUATE, MACHINE, PREDICT, SERVER, TRAIN
from tests.helpers.doctor_facts import levels, only
from tests.helpers.stage_facts import SIZE

GB = 1_000_000_000


def findings(free: int = 10 * GB, disk: int = 100 * GB, method: str = "metis", **stages: StageCost) -> list[Finding]:
    small = {name: StageCost(1, GB, GB, GB) for name in (INGEST, CUT, PARTS, TRAIN, SERVER, MACHINE, EVALUATE, PREDICT)}
    named = {"cut": CUT, "ingest": INGEST, "parts": PARTS, "train": TRAIN, "evaluation": EVALUATE}
    given = {named[name]: cost for name, cost in stages.items()}
    return check_stages(load_config([]), Forecast(SIZE, method, free, small | given), free, disk)


def test_stages_that_fit_are_one_line() -> None:
    (finding,) = findings()
    assert finding.level == OK
    assert "1.0 GB of memory, 10.0 GB are free" in finding.what


def test_each_stage_names_the_setting_that_helps() -> None:
    large = StageCost(1, 20 * GB, 0)
    assert "dataset.memory" in only(findings(ingest=large), WARN).advice
    finding = only(findings(cut=large), WARN)
    assert finding.what == "cut: needs about 20.0 GB of memory, 10.0 GB are free"
    assert "partition=stream" in finding.advice
    assert "partition=stream" not in only(findings(cut=large, method="stream"), WARN).advice
    assert "cluster.num_machines" in only(findings(parts=large), WARN).advice
    assert "sampling.server_fanout" in only(findings(train=large), WARN).advice
    assert "evaluate.scratch" in only(findings(train=large, evaluation=large), WARN).advice


def test_parts_of_training_are_counted_with_it() -> None:
    assert levels(findings(evaluation=StageCost(1, 20 * GB, 0))) == {OK}


def test_mapped_files_need_not_fit_but_take_longer() -> None:
    finding = only(findings(train=StageCost(1, 5 * GB, 6 * GB)), WARN)
    assert "again and again" in finding.what
    assert "partition.features_dtype=float16" in finding.advice


def test_a_kernel_that_reads_far_ahead_makes_missing_rows_dear() -> None:
    stages = {name: StageCost(1, 5 * GB, 6 * GB) for name in (TRAIN, EVALUATE)}
    found = check_stages(load_config([]), Forecast(SIZE, "metis", GB, stages), 10 * GB, 100 * GB, read_ahead=8 << 20)
    assert "reads 8.4 MB of this disk" in only(found, WARN).advice


def test_disk() -> None:
    finding = only(findings(parts=StageCost(1, GB, GB, disk=200 * GB)), WARN)
    assert finding.what == "write the parts: needs about 200 GB of disk, 100 GB are free"
    assert "partition.root" in finding.advice
    assert "float16" in finding.advice


def test_rows_and_json_of_a_forecast() -> None:
    forecast = Forecast(
        SIZE, "stream", GB, {CUT: StageCost(30, GB, 2 * GB, 3 * GB, waits=5), MACHINE: StageCost(1, 1, 1)}
    )
    assert forecast.rows()[0] == ["cut (stream)", "35 s", "1.0 GB", "2.0 GB", "3.0 GB"]
    assert forecast.rows()[1][0] == "  a machine"
    found = forecast.as_json()
    assert found["nodes"] == 1_000
    assert found["stages"]["cut"] == {"seconds": 35, "cpu": 30, "anonymous": GB, "mapped": 2 * GB, "disk": 3 * GB}


def test_seconds_in_words() -> None:
    words = {0.44: "0.4 s", 35: "35 s", 119: "119 s", 600: "10 min", 7200: "2.0 h"}
    assert {value: format_seconds(value) for value in words} == words
