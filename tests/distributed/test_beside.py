"""Correction beside the local steps, over real processes: the same bits as loopback, exact resume, and an overlap."""

from pathlib import Path

import pytest
import torch

from llcg_dist.errors import TrainingError
from tests.helpers.run_files import bytes_crossed, model_bytes, model_state, rows, rows_without_times, summary
from tests.helpers.training import TINY, assert_loopback_equals_ranks, in_ranks, on_loopback

BESIDE = [*TINY, "algorithm.correction=beside", "algorithm.S=2"]
AUTO = [*BESIDE, "algorithm.S=auto", "algorithm.S_max=3", "train.server_batch_size=64"]
FILL = [*BESIDE, "algorithm.S=fill", "algorithm.fill_ratio=1.5"]
JOBS = {
    "after": [*TINY, "algorithm.S=2"],
    "beside": BESIDE,
    "fill": [*FILL, "algorithm.server_optimizer=nesterov", "algorithm.batchnorm_stats=best"],
    "auto": [*AUTO, "algorithm.exchange_dtype=int8", "algorithm.server_weight=0.3"],
    "measured": [*BESIDE, "diagnostics.every=2", "diagnostics.hessian_steps=2", "algorithm.exchange_dtype=bfloat16"],
    "bfloat16": [*BESIDE, "algorithm.exchange_dtype=bfloat16"],
    "busy": [*BESIDE, "num_rounds=2", "algorithm.K=100", "algorithm.S=40", "algorithm.rho=1.0"],
    "rates": [*BESIDE, "algorithm.S=fill", "num_rounds=2"],
}
EVEN = {name: [*JOBS[name], "algorithm.rho=1.0"] for name in ("fill", "auto")}
"""Growth would follow the planned length of the run, which is another where it is first started shorter."""
JOBS |= {f"even_{name}": job for name, job in EVEN.items()}
JOBS |= {f"resumed_{name}": [*job, "num_rounds=2"] for name, job in EVEN.items()}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_ranks(tmp_path_factory.mktemp("beside"), JOBS)


@pytest.mark.parametrize("name", ["beside", "fill", "auto", "measured"])
def test_loopback_equals_processes(runs: Path, name: str) -> None:
    assert_loopback_equals_ranks(runs, name, *JOBS[name])


def test_it_is_another_model_for_the_same_bytes(runs: Path) -> None:
    assert model_bytes(runs / "beside") != model_bytes(runs / "after")
    assert bytes_crossed(runs / "beside") == bytes_crossed(runs / "after")
    assert model_bytes(runs / "measured") == model_bytes(runs / "bfloat16")  # diagnostics change nothing


def test_the_first_round_is_the_mean_of_both_ways(runs: Path) -> None:
    """What machines do alone and what the server does alone, from the same weights, joined by hand."""
    one = [*TINY, "num_rounds=1", "algorithm.batchnorm_stats=average", "algorithm.rho=1.0", "algorithm.S=2"]
    machines = model_state(on_loopback(runs, "machines", *one, "algorithm.S=0"))
    server = model_state(on_loopback(runs, "server", *one, "algorithm=server_only", "algorithm.S=2"))
    joined = [*one, "algorithm.correction=beside", "algorithm.server_weight=0.25"]
    for name, found in model_state(on_loopback(runs, "joined", *joined)).items():
        by_hand = machines[name] if "running" in name else 0.75 * machines[name] + 0.25 * server[name]
        if found.is_floating_point():
            torch.testing.assert_close(found, by_hand)


def test_server_and_machines_step_at_the_same_time(runs: Path) -> None:
    for row in rows(runs / "busy"):
        timeline = row["timeline"]
        begin, end = timeline["correct_beside"]
        assert 0 < row["seconds_correct_beside"] <= end - begin
        for seconds, (started, ended) in zip(row["seconds_local_by_part"], timeline["machines"], strict=True):
            assert max(begin, started) < min(end, ended)
            assert seconds <= ended - started + 0.01  # two clocks, one of which may be adjusted
        assert timeline["send"][1] <= begin < end <= timeline["evaluate"][0] <= timeline["wait"][0]
        assert 0 < row["cpu_correct_beside"] <= row["cluster_seconds"]
    after = rows(runs / "after")[-1]
    assert "seconds_correct_beside" not in after
    assert after["timeline"]["correct"][1] == after["seconds_round"]


@pytest.mark.parametrize("name", ["fill", "auto"])
def test_a_run_of_processes_goes_on_exactly(runs: Path, name: str) -> None:
    """Two rounds of ranks and then two more on loopback, or four at once."""
    resumed = on_loopback(runs, f"resumed_{name}", *EVEN[name])
    assert model_bytes(resumed) == model_bytes(runs / f"even_{name}")
    assert rows_without_times(resumed) == rows_without_times(runs / f"even_{name}")


def test_measured_rates_are_written_down_and_give_the_same_run_again(runs: Path) -> None:
    """The ratio of the records, given as a setting, plans the same steps; a resumed run has it in its checkpoint."""
    ratio = summary(runs / "rates")["fill_ratio"]
    assert ratio > 0
    given = on_loopback(runs, "given", *JOBS["rates"], f"algorithm.fill_ratio={ratio!r}")
    assert model_bytes(given) == model_bytes(runs / "rates")
    steps = [max(1, min(16, int(ratio * row["local_steps"]))) for row in rows(given)]
    assert [row["S"] for row in rows(given)] == [row["S"] for row in rows(runs / "rates")] == steps
    on_loopback(runs, "rates", *JOBS["rates"], "num_rounds=3")
    assert summary(runs / "rates")["fill_ratio"] == ratio


def test_a_correction_that_diverges_says_so(runs: Path) -> None:
    with pytest.raises(TrainingError, match=r"round 1: the correction diverged; lower train\.server_lr"):
        on_loopback(runs, "diverges", *BESIDE, "train.server_lr=1e38", "train.optimizer=sgd")
