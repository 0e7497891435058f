"""Three rounds of llcg are those of Algorithm 2 as tests/helpers/by_the_paper.py has it, for every kind of layer."""

from functools import partial
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from llcg_dist import seeding
from llcg_dist.config.compose import load_config
from llcg_dist.data.graph import TEST, VAL
from llcg_dist.data.partition import store_path
from tests.helpers.by_the_paper import CLASSES, FEATURES, SEED, State, Worker, dense, initial_state, logits, mean_of
from tests.helpers.run_files import model_state, rows
from tests.helpers.training import on_loopback

MACHINES, LOCAL_LR, SERVER_LR, LOCAL_BATCH, SERVER_BATCH, CORRECTIONS = 3, 0.1, 0.15, 20, 50, 2
STEPS = [3, 4, 5]
"""K = 4 with rho = 1.3 over three rounds: 12 steps in all, 3.008, 3.910 and 5.083."""
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}


@torch.no_grad()
def algorithm_2(
    model: str, store: Path, state: State, optimizer: str, statistics: str
) -> tuple[list[tuple[float, float, float]], State]:
    """(training loss, validation and test score of every round; the last model as it was evaluated)."""
    of_machines, of_server = (partial(OPTIMIZERS[optimizer], lr=lr) for lr in (LOCAL_LR, SERVER_LR))
    parts, full = [dense(store / f"part{part}") for part in range(MACHINES)], dense(store / "global")
    machines = [Worker(model, data, state, of_machines, seeding.part_stream(part)) for part, data in enumerate(parts)]
    server = Worker(model, full, state, of_server, seeding.SERVER_STREAM)
    curve, evaluated = list[tuple[float, float, float]](), state
    for round_, steps in enumerate(STEPS, start=1):
        state = mean_of(machine.steps(state, round_, steps, LOCAL_BATCH) for machine in machines)
        state = server.steps(state, round_, CORRECTIONS, SERVER_BATCH)
        evaluated = dict(state)
        output = logits(model, evaluated, full, torch.ones(len(full.labels), dtype=torch.bool), statistics)
        right = (output.argmax(dim=1) == full.labels).double()
        val, test = (right[full.split == split].mean().item() for split in (VAL, TEST))
        train = full.train_nodes
        curve.append((functional.cross_entropy(output[train], full.labels[train]).item(), val, test))
    return curve, evaluated


@pytest.mark.parametrize(("optimizer", "statistics"), [("sgd", "average"), ("adam", "recalibrate")])
@pytest.mark.parametrize("model", ["gcn", "sage", "gat", "appnp"])
def test_three_rounds_are_those_of_algorithm_2(model: str, optimizer: str, statistics: str, tmp_path: Path) -> None:
    """With Adam the curves alone: a bias before BatchNorm has no gradient but rounding, which Adam makes a step of."""
    overrides = ["experiment=tiny", "dataset.nodes=200", f"dataset.features={FEATURES}", f"dataset.classes={CLASSES}"]
    overrides += ["partition=random", "algorithm=llcg", f"algorithm.S={CORRECTIONS}"]
    overrides += ["algorithm.K=4", "algorithm.rho=1.3", f"num_rounds={len(STEPS)}", f"seed={SEED}"]
    overrides += [f"model={model}", "model.dropout=0", "sampling.fanout=-1", f"cluster.num_machines={MACHINES}"]
    overrides += [f"train.local_lr={LOCAL_LR}", f"train.server_lr={SERVER_LR}", f"train.optimizer={optimizer}"]
    overrides += [f"train.local_batch_size={LOCAL_BATCH}", f"train.server_batch_size={SERVER_BATCH}"]
    overrides += [f"algorithm.batchnorm_stats={statistics}", f"partition.root={tmp_path}/parts"]
    run = on_loopback(tmp_path, "run", *overrides)

    config = load_config(overrides)
    curve, expected = algorithm_2(model, store_path(config), initial_state(config), optimizer, statistics)

    found = [(row["train_loss"], row["val_score"], row["test_score"]) for row in rows(run)]
    assert [row["local_steps"] for row in rows(run)] == STEPS
    torch.testing.assert_close(torch.tensor(found), torch.tensor(curve), rtol=0, atol=2e-6)
    assert curve[-1][0] < curve[0][0]
    if optimizer == "sgd":
        model_found = model_state(run)
        for name, value in expected.items():
            torch.testing.assert_close(model_found[name].double(), value, rtol=0, atol=2e-6)
