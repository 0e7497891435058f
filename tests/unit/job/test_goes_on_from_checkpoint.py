"""A run goes on from its checkpoint, and from nothing that came after it."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from llcg_dist.config.compose import load_config
from llcg_dist.errors import UserError
from llcg_dist.job.server import Server
from llcg_dist.job.server_checkpoints import ServerState
from llcg_dist.records.starts import read_starts
from tests.helpers.resuming import assert_undisturbed
from tests.helpers.run_files import model_bytes, rows, summary
from tests.helpers.stopping import lose, stopped
from tests.helpers.training import TINY, on_loopback
from tests.unit.job.test_observer import Watched

COUNTS = ["model=own", "model.target=torch_geometric.nn.GIN", "model.options.hidden_channels=8"]
COUNTS += ["model.options.num_layers=2", "model.options.norm=batch_norm", "model.options.norm_kwargs={momentum: null}"]


def test_best_pt_is_not_of_a_round_that_is_repeated(tmp_path: Path) -> None:
    job = [*TINY, "algorithm=psgd_pa", "train.local_lr=0.3", "num_rounds=8"]
    whole = on_loopback(tmp_path, "whole", *job)
    best = max(rows(whole), key=lambda row: row["val_score"])
    assert best["round"] < 5  # else the rounds after the stop would make best.pt again
    stopped(tmp_path, "halved", 6, *job)
    torch.save({"of": "another round"}, tmp_path / "halved" / "best.pt")
    assert_undisturbed(on_loopback(tmp_path, "halved", *job), whole)
    assert summary(tmp_path / "halved")["best_val_score"] == best["val_score"]


def test_the_best_model_of_an_earlier_version_stays(tmp_path: Path) -> None:
    """Its checkpoints have none, and no round after them is better: the ones that follow have it."""
    job = [*TINY, "algorithm=psgd_pa", "train.local_lr=0.3", "num_rounds=8"]
    whole, pack = on_loopback(tmp_path, "whole", *job), ServerState.pack

    def without_best(state: ServerState, *results: Any) -> dict[str, Any]:
        return {name: value for name, value in pack(state, *results).items() if name != "best"}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ServerState, "pack", without_best)
        stopped(tmp_path, "halved", 5, *job)
    stopped(tmp_path, "halved", 7, *job)
    assert_undisturbed(on_loopback(tmp_path, "halved", *job), whole)


def test_a_run_that_starts_over_does_not_meet_the_records_of_the_one_before_in_the_mirror(tmp_path: Path) -> None:
    job = [*TINY, "num_rounds=6", "checkpoint.every=4"]
    mirrored = [*job, f"checkpoint.mirror={tmp_path}/mirror"]
    whole = on_loopback(tmp_path, "whole", *job)
    on_loopback(tmp_path, "again", *mirrored)
    stopped(tmp_path, "again", 2, *mirrored, "resume=fresh")
    assert_undisturbed(on_loopback(tmp_path, "again", *mirrored), whole)


def test_a_run_that_starts_over_keeps_nothing_that_is_of_another(tmp_path: Path) -> None:
    """Its parts may be others; a logger that knew the old run would go on with it, and leave out all its rounds."""
    job = [*TINY, "num_rounds=2"]
    run = on_loopback(tmp_path, "run", *job, "partition=random")
    (run / "mlflow.json").write_text('{"run_id": "of the run before"}')
    on_loopback(tmp_path, "run", *job, "partition=stream", "resume=fresh")
    assert json.loads((run / "partition.json").read_text())["partitioner"].startswith("stream")
    assert not (run / "mlflow.json").exists()
    on_loopback(tmp_path, "run", *job, "algorithm=single", "resume=fresh")
    assert not (run / "partition.json").exists()


def test_what_a_round_began_without_is_still_said_where_its_row_is_made_again(tmp_path: Path) -> None:
    """cluster.script replays it from there."""
    job = [*TINY, "num_rounds=6"]
    lose(stopped(tmp_path, "run", 2, *job), "part1")
    stopped(tmp_path, "run", 3, *job)
    run = on_loopback(tmp_path, "run", *job)
    found = {row["round"]: row["checkpoint_lost"] for row in rows(run) if "checkpoint_lost" in row}
    assert {round_: [loss["part"] for loss in lost] for round_, lost in found.items()} == {3: [1]}


def test_a_loss_is_still_said_where_the_start_that_found_it_ended_before_the_next_checkpoint(tmp_path: Path) -> None:
    job = [*TINY, "num_rounds=6"]
    lose(stopped(tmp_path, "run", 2, *job), "part1")
    stopped(tmp_path, "run", 2, *job)
    run = on_loopback(tmp_path, "run", *job)
    assert [start.get("lost", []) != [] for start in read_starts(run)] == [False, True, False]
    assert [[loss["part"] for loss in row.get("checkpoint_lost", [])] for row in rows(run)[2:4]] == [[1], []]


def test_a_buffer_that_forward_replaces_is_in_the_model_that_is_sent(tmp_path: Path) -> None:
    """As torch's own documentation has it: self.center = ... in place of self.center.copy_(...)."""
    job, target = (
        [*TINY, "num_rounds=6", "algorithm.S=2", "model=own", "model.layers=1"],
        "model.target=tests.helpers.own_buffers",
    )
    in_place = on_loopback(tmp_path, "in_place", *job, f"{target}.Centred")
    whole = on_loopback(tmp_path, "whole", *job, f"{target}.CentredAnew")
    assert model_bytes(whole) == model_bytes(in_place)
    assert torch.load(whole / "model.pt")["center"].abs().min() > 0
    stopped(tmp_path, "halved", 3, *job, f"{target}.CentredAnew")
    assert_undisturbed(on_loopback(tmp_path, "halved", *job, f"{target}.CentredAnew"), whole)


@pytest.mark.parametrize(("option", "was"), [("grows", r"\[\d+\]"), ("late", "None")])
def test_a_buffer_that_the_vector_has_no_place_for_is_refused(tmp_path: Path, option: str, was: str) -> None:
    job = [*TINY, "model=own", "model.layers=1", f"model.options.{option}=true"]
    job.append("model.target=tests.helpers.own_buffers.CentredAnew")
    with pytest.raises(UserError, match=rf"its forward made \[\d+\] of the buffer center, which was {was} and is sent"):
        on_loopback(tmp_path, "run", *job)


def test_buffers_besides_the_flat_vector_go_on(tmp_path: Path) -> None:
    """With momentum=None BatchNorm's statistics follow from a counter."""
    job = [*TINY, *COUNTS, "algorithm.batchnorm_stats=average", "num_rounds=6"]
    whole = on_loopback(tmp_path, "whole", *job)
    stopped(tmp_path, "halved", 3, *job)
    assert_undisturbed(on_loopback(tmp_path, "halved", *job), whole)


class Rounds(Server):
    """A server that only counts rounds, with an evaluator that is slow."""

    def __init__(self, run: Watched) -> None:
        patience: Any = SimpleNamespace(config=load_config(["early_stop.patience=1"]))
        members = SimpleNamespace(admit=lambda parts: None)
        self.algorithm, self._observer = patience, run.observer
        self.channel: Any = SimpleNamespace(admit=lambda round_: [], take_late=lambda round_: [], members=members)
        self.screener: Any = SimpleNamespace(late_updates=SimpleNamespace(add=lambda answers: None))
        self._restore_machines = lambda round_, parts: []  # type: ignore[method-assign]


@pytest.mark.parametrize("first", [1, 4])
def test_scores_that_were_due_decide_whether_the_next_round_is_run(tmp_path: Path, first: int) -> None:
    """Scores fall from round 2 on, so that the run ends with round 3; a checkpoint of it has round 2 unrecorded."""
    run = Watched(tmp_path, "early_stop.patience=1")
    run.evaluations.falling = True
    run.record(*range(1, first - 1))
    ran = []
    for round_ in Rounds(run).rounds_from(first):
        ran.append(round_)
        run.record(*range(max(1, first - 1, round_ - 1), round_))  # as the machines train: the round before
    assert [*range(1, first), *ran] == [1, 2, 3]
