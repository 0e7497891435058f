"""What crosses between a server and two machines: models, as they were rounded, and a little control."""

from pathlib import Path

import pytest
import torch

from tests.helpers.run_files import messages, model_bytes, model_sizes, rows, summary, wire
from tests.helpers.training import TINY, assert_loopback_equals_ranks, in_ranks

P = 2
CONTROL_BYTES_ALLOWED = 4096  # a machine and round
JOBS = {
    "llcg": TINY,
    "int8": [*TINY, "algorithm.exchange_dtype=int8"],
    "bfloat16": [*TINY, "algorithm.exchange_dtype=bfloat16", "algorithm=psgd_pa"],
    "ggs_int8": [*TINY, "algorithm=ggs", "algorithm.exchange_dtype=int8"],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_ranks(tmp_path_factory.mktemp("traffic"), JOBS)


def test_bytes_are_exactly_one_model_per_machine_and_direction(runs: Path) -> None:
    model, _ = model_sizes(runs / "llcg")
    found = rows(runs / "llcg")
    assert [row["round"] for row in found] == [1, 2, 3, 4]
    for row in found:
        assert row["bytes_up"] == row["bytes_down"] == P * model
        assert row["feature_bytes"] == row["gradient_bytes"] == 0
        assert 0 < row["control_bytes"] <= P * CONTROL_BYTES_ALLOWED
        assert row["exchanges"] == 1


def test_only_parameters_and_a_little_control_cross(runs: Path) -> None:
    everything = wire(runs / "llcg")["messages"]
    assert {message["kind"] for message in everything} == {"parameters", "control"}
    for message in everything:
        itemsize = torch.empty(0, dtype=getattr(torch, message["dtype"])).element_size()
        assert message["bytes"] == message["elements"] * itemsize * message["count"]
    control = sum(message["bytes"] for message in messages(runs / "llcg") if message["kind"] == "control")
    in_rounds = sum(row["control_bytes"] for row in rows(runs / "llcg"))
    assert in_rounds <= control <= in_rounds + P * 64  # and to each machine that the run is over
    assert summary(runs / "llcg")["total_bytes"] == sum(message["bytes"] for message in everything)


@pytest.mark.parametrize(("name", "dtype", "share"), [("int8", "int8", 0.28), ("bfloat16", "bfloat16", 0.5)])
def test_rounded_models_are_counted_as_sent(runs: Path, name: str, dtype: str, share: float) -> None:
    """The model of these tests is small: scales and statistics weigh more than in a real one."""
    models = [message for message in wire(runs / name)["messages"] if message["kind"] == "parameters"]
    assert {message["dtype"] for message in models} == {dtype}
    for row, exact in zip(rows(runs / name), rows(runs / "llcg"), strict=True):
        assert row["bytes_up"] == row["bytes_down"] <= share * exact["bytes_up"]
    assert sum(message["bytes"] for message in models) == sum(2 * row["bytes_up"] for row in rows(runs / name))
    assert model_bytes(runs / name) != model_bytes(runs / "llcg")


@pytest.mark.parametrize("name", ["int8", "bfloat16", "ggs_int8"])
def test_loopback_rounds_as_processes_do(runs: Path, name: str) -> None:
    assert_loopback_equals_ranks(runs, name, *JOBS[name])
