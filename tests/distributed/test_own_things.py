"""Models, methods and data of the user's own over real processes: the bits of loopback, under every method, after a
kill."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.helpers.jobs import REPOSITORY, finish, llcg, ranks_of, start_llcg, wait_for_rounds
from tests.helpers.resuming import assert_undisturbed
from tests.helpers.run_files import model_bytes, model_state
from tests.helpers.training import TINY, assert_loopback_equals_ranks, in_ranks

SAGE = ["model=own", "model.target=torch_geometric.nn.GraphSAGE"]
SAGE += ["model.options.hidden_channels=8", "model.options.num_layers=2", "model.options.norm=batch_norm"]
MEDIAN = ["algorithm=own", "algorithm.target=tests.helpers.own_method.CoordinateMedian"]
ADAMW = ["train.optimizer=torch.optim.AdamW", "train.optimizer_options.betas=[0.8,0.99]"]
JOBS = {
    "llcg": [*TINY, *SAGE, *ADAMW],
    "llcg_plus": [*TINY, *SAGE, "algorithm=llcg_plus", "algorithm.S=auto", "algorithm.exchange_dtype=int8"],
    "subgraph_approx": [*TINY, *SAGE, "algorithm=subgraph_approx", "sampling.method=labor"],
    "ggs": [*TINY, *SAGE, "algorithm=ggs"],
    "full_sync": [*TINY, *SAGE, "algorithm=full_sync"],
    "diagnostics": [*TINY, *SAGE, "diagnostics.every=2", "diagnostics.hessian_steps=2"],
    "on_blocks": [*TINY, "model=own", "model.target=tests.helpers.own_models.OnBlocks"],
    "median": [*TINY, *MEDIAN, *SAGE],
    "state": [*TINY, "algorithm=own", "algorithm.target=tests.helpers.stateful_method.BothMomenta"],
}
"""Everything that a model meets somewhere."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_ranks(tmp_path_factory.mktemp("own"), JOBS)


@pytest.mark.parametrize("name", JOBS)
def test_processes_have_the_bits_of_loopback(runs: Path, name: str) -> None:
    assert_loopback_equals_ranks(runs, name, *JOBS[name])


def test_saved_weights_have_the_names_of_the_users_module(runs: Path) -> None:
    assert {"convs.0.lin_l.weight", "norms.0.module.running_mean"} <= model_state(runs / "llcg").keys()


ALL_OWN = ["dataset=own", "dataset.target=own_dataset.ring_of_cliques", "dataset.options.cliques=24"]
ALL_OWN += ["model=own", "model.target=own_model.Net", "model.options.heads=3"]
ALL_OWN += ["algorithm=own", "algorithm.target=own_method.FedProx", "algorithm.options.mu=0.1"]
ALL_OWN += ["cluster.num_machines=2", "num_rounds=60", "algorithm.K=2", "cluster.max_restarts=2", "logger=none"]


@pytest.mark.alone
def test_own_model_method_and_data_in_a_folder_of_their_own_killed_and_resumed(tmp_path: Path) -> None:
    for example in ("own_dataset", "own_model", "own_method"):
        shutil.copy(REPOSITORY / "examples" / f"{example}.py", tmp_path)
    outcome = llcg("train", *ALL_OWN, "cluster.backend=loopback", "run_dir=undisturbed", cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    job = start_llcg("train", *ALL_OWN, "run_dir=killed", cwd=tmp_path)
    wait_for_rounds(tmp_path / "killed", 5, job)
    os.kill(ranks_of(job)[1], signal.SIGKILL)
    outcome = finish(job)
    assert outcome.code == 0, outcome.err
    assert_undisturbed(tmp_path / "killed", tmp_path / "undisturbed")
    other = [setting for setting in ALL_OWN if not setting.startswith("algorithm.options")]
    outcome = llcg("train", *other, "cluster.backend=loopback", "run_dir=other_mu", cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    assert model_bytes(tmp_path / "other_mu") != model_bytes(tmp_path / "killed")
