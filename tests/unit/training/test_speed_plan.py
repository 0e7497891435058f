"""Local steps by speed, with numbers worked out by hand; and runs that follow such a plan."""

from pathlib import Path

import pytest

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config
from llcg_dist.errors import UserError
from llcg_dist.records.starts import read_starts
from llcg_dist.training.speed_plan import balanced_steps, measured_speeds, shares
from tests.helpers.run_files import model_bytes, rows, rows_without_times, summary
from tests.helpers.stopping import stopped
from tests.helpers.training import on_loopback

JOB = [
    "experiment=tiny",
    "cluster.num_machines=3",
    "num_rounds=4",
    "algorithm.K=4",
    "algorithm.rho=1",
    "algorithm.balance_speed=true",
]


def test_the_fastest_has_speed_1_and_the_mean_share_is_1() -> None:
    speeds = measured_speeds([0.1, 0.5, 0.1, 0.1])
    assert speeds == pytest.approx([1, 0.2, 1, 1])
    assert shares(speeds) == pytest.approx([1.25, 0.25, 1.25, 1.25])


def test_what_rounding_leaves_out_comes_in_a_later_round() -> None:
    assert balanced_steps([4, 4, 4, 4], 0.4) == [2, 1, 2, 1]
    assert balanced_steps([8, 8], 1.25) == [10, 10]
    assert balanced_steps([2, 2, 2], 0.1) == [1, 1, 1], "every machine takes a step"


def test_a_run_with_given_speeds_takes_these_steps(tmp_path: Path) -> None:
    run = on_loopback(tmp_path, "run", *JOB, "algorithm.speeds=[1,0.5,1.5]")
    assert [row["local_steps_by_part"] for row in rows(run)] == [[4, 2, 6]] * 4
    assert summary(run)["speeds"] == [1.0, 0.5, 1.5]
    stopped(tmp_path, "halved", 2, *JOB, "algorithm.speeds=[1,0.5,1.5]")
    halved = on_loopback(tmp_path, "halved", *JOB, "algorithm.speeds=[1,0.5,1.5]")
    assert model_bytes(halved) == model_bytes(run)


def test_measured_speeds_are_recorded_kept_by_a_resumed_run_and_give_the_same_run_again(tmp_path: Path) -> None:
    stopped(tmp_path, "run", 2, *JOB)
    (first,) = read_starts(tmp_path / "run")
    assert len(first["speeds"]["cpu_local_step_by_part"]) == 3
    run = on_loopback(tmp_path, "run", *JOB)
    speeds = summary(run)["speeds"]
    assert speeds == first["speeds"]["speeds"]
    assert max(speeds) == 1
    given = on_loopback(tmp_path, "given", *JOB, f"algorithm.speeds={speeds}")
    assert rows_without_times(given) == rows_without_times(run)
    assert model_bytes(given) == model_bytes(run)


def test_a_server_that_stands_in_takes_the_steps_of_the_part(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text('{"round": 1, "absent": [1]}\n')
    job = [*JOB, "cluster.on_loss=go_on", f"cluster.script={tmp_path}/rows"]
    even = on_loopback(tmp_path, "even", *job, "algorithm.speeds=[1,1,1]")
    slow = on_loopback(tmp_path, "slow", *job, "algorithm.speeds=[1.3,0.4,1.3]")
    assert rows(slow)[-1]["stood_in"] == [1]
    assert model_bytes(even) != model_bytes(slow)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["algorithm=ggs"], "algorithm.balance_speed=True: must be false: machines of ggs take their steps together"),
        (["algorithm=full_sync"], "machines of full_sync take their steps together"),
        (["algorithm=single"], "algorithm.balance_speed=True: must be false"),
        (["algorithm.speeds=[1,2]"], "must be 3 numbers, one for every part"),
        (["algorithm.speeds=[1,2,0]"], "must be positive numbers"),
        (["algorithm.speeds=[1,2,3]", "algorithm.balance_speed=false"], "has no effect unless"),
        (["diagnostics.every=1"], "diagnostics.every=1: must be 0 with algorithm.balance_speed=true"),
    ],
)
def test_what_cannot_be_balanced_is_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        build_algorithm(load_config([*JOB, *overrides]))
