"""Every model over real processes, with a correction on the server and without."""

from pathlib import Path

import pytest

from tests.helpers.run_files import model_bytes, model_sizes, rows
from tests.helpers.training import TINY, assert_loopback_equals_ranks, in_ranks

P = 2
MODELS = ("gat", "appnp", "resgcn", "skip_sage", "mlp", "arch")
METHODS = ("llcg", "psgd_pa")
JOBS = {f"{model}_{method}": [f"model={model}", f"algorithm={method}"] for model in MODELS for method in METHODS}
JOBS["gcn_weighted"] = ["model=gcn", "algorithm.averaging=train_nodes"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_ranks(tmp_path_factory.mktemp("models"), {name: [*TINY, *JOBS[name]] for name in JOBS})


@pytest.mark.parametrize("name", JOBS)
def test_a_model_trains_to_the_bits_of_loopback(runs: Path, name: str) -> None:
    assert_loopback_equals_ranks(runs, name, *TINY, *JOBS[name])
    losses = [row["train_loss"] for row in rows(runs / name)]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", JOBS)
def test_all_of_a_model_crosses_once_a_round_and_direction(runs: Path, name: str) -> None:
    model, _ = model_sizes(runs / name)
    assert {(row["bytes_up"], row["bytes_down"]) for row in rows(runs / name)} == {(P * model, P * model)}


def test_models_and_methods_are_told_apart(runs: Path) -> None:
    """Otherwise the tests above would hold for one model under all names."""
    assert len({model_bytes(runs / name) for name in JOBS}) == len(JOBS)
