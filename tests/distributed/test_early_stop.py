"""Runs that end early, and runs that begin with another's weights: the same bits on loopback, in ranks and resumed."""

import shutil
from pathlib import Path

import pytest
import torch

from llcg_dist.cli.watch.command import watch
from llcg_dist.errors import UserError
from llcg_dist.job.observer import Observer
from llcg_dist.report.runs import find_runs
from tests.helpers.run_files import model_bytes, model_state, rows, rows_without_times, summary
from tests.helpers.stopping import stopped
from tests.helpers.training import assert_loopback_equals_ranks, in_ranks, on_loopback

TINY = ["experiment=tiny", "partition=random", "logger=none", "num_rounds=40", "train.local_lr=0.3"]
STOPPING = [*TINY, "early_stop.patience=3"]
METHODS = ["llcg", "psgd_pa", "full_sync", "ggs", "subgraph_approx", "single", "server_only"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    on_loopback(root, "run", *STOPPING)
    return root


def test_a_run_ends_where_its_score_has_stopped_rising(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded, told = rows(root / "run"), summary(root / "run")
    last = len(recorded)
    assert 5 <= last < 40
    assert [row["round"] for row in recorded] == list(range(1, last + 1))
    scores = [row["val_score"] for row in recorded]
    best = scores.index(max(scores[:-1])) + 1
    assert last == best + 3 + 1  # three evaluations that are no better, and the round that was on its way
    assert [row["round"] for row in recorded if "early_stop" in row] == [last - 1]
    assert (told["stopped_early"], told["num_rounds"]) == (True, last)
    assert f"round {best} not exceeded in 3 evaluations" in told["stop_reason"]
    unstopped = on_loopback(root, "unstopped", *TINY)
    assert summary(unstopped)["stopped_early"] is False
    without_notes = [{k: v for k, v in row.items() if k != "early_stop"} for row in rows_without_times(root / "run")]
    assert without_notes == rows_without_times(unstopped)[:last]
    assert f"stopping early after round {last}: validation score" not in capsys.readouterr().out
    on_loopback(root, "again", *STOPPING)
    assert f"stopping early after round {last}: validation score" in capsys.readouterr().out


def test_a_run_that_stopped_early_is_finished(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = root / "run"
    before, last = model_bytes(run_dir), len(rows(run_dir))
    on_loopback(root, "run", *STOPPING)
    assert "holds a run that stopped early: validation score" in capsys.readouterr().out
    assert model_bytes(run_dir) == before
    (found,) = find_runs([run_dir])
    assert found.finished
    assert found.rounds_text == f"{last} of 40, stopped early"
    assert watch([str(run_dir), "--once"]) == 0
    out = capsys.readouterr().out
    assert f"round {last}/{last}" in out
    assert "stopped early" in out


@pytest.mark.parametrize("back", [0, 1, 2])
def test_stopped_by_a_power_cut_it_ends_with_the_same_round(root: Path, back: int) -> None:
    """Before the round that decides is recorded, after it, and in the round before."""
    last = len(rows(root / "run"))
    if back:
        stopped(root, f"cut{back}", last - back, *STOPPING)
    else:  # the last round is saved, and its row not yet written
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Observer, "finish", lambda *arguments: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                on_loopback(root, "cut0", *STOPPING)
    on_loopback(root, f"cut{back}", *STOPPING)
    assert model_bytes(root / f"cut{back}") == model_bytes(root / "run")
    assert rows_without_times(root / f"cut{back}") == rows_without_times(root / "run")
    assert summary(root / f"cut{back}")["stop_reason"] == summary(root / "run")["stop_reason"]


def test_more_patience_goes_on(root: Path) -> None:
    shutil.copytree(root / "run", root / "patient")
    with pytest.raises(UserError, match=r"early_stop.patience \(3 there, 2 here\)"):
        on_loopback(root, "patient", *TINY, "early_stop.patience=2")
    on_loopback(root, "patient", *TINY, "early_stop.patience=null")
    unstopped = on_loopback(root, "unstopped", *TINY)
    assert model_bytes(root / "patient") == model_bytes(unstopped)
    assert summary(root / "patient")["stopped_early"] is False


@pytest.mark.parametrize("method", METHODS)
def test_every_method_ends(root: Path, method: str) -> None:
    run_dir = on_loopback(root, f"of_{method}", *STOPPING, f"algorithm={method}", "early_stop.min_delta=0.9")
    assert len(rows(run_dir)) == 5  # the first score counts, the next three are no better, and one was on its way
    assert summary(run_dir)["stopped_early"]


@pytest.mark.full
def test_in_ranks(root: Path) -> None:
    quick = [*STOPPING, "early_stop.min_delta=0.9"]
    jobs = {
        "ranks": [*quick, f"init_from={root}/run"],
        "ranks_shared": [*quick, "algorithm=full_sync", "evaluate.every=2"],
    }
    in_ranks(root, jobs)
    for name, settings in jobs.items():
        assert summary(root / name)["stopped_early"]
        assert_loopback_equals_ranks(root, name, *settings)
    assert [len(rows(root / name)) for name in jobs] == [5, 9]


def test_a_warm_start(root: Path) -> None:
    """Where nothing is learned the weights stay what they were, and of BatchNorm's statistics 0.9 * 0.9 is left after
    two batches: what they began with makes all the difference between two such runs."""
    still = [*TINY, "algorithm=psgd_pa", "num_rounds=1", "train.optimizer=sgd", "train.local_lr=1e-30"]
    trained, ended = model_state(root / "run"), []
    for begun in (0.0, 2.0):
        state = {name: tensor + begun if "running" in name else tensor for name, tensor in trained.items()}
        torch.save(state, root / f"weights{begun}.pt")
        ended.append(on_loopback(root, f"warm{begun}", *still, f"init_from={root}/weights{begun}.pt"))
    first, second = map(model_state, ended)
    for name, tensor in trained.items():
        if "running" in name:
            torch.testing.assert_close(second[name] - first[name], torch.full_like(tensor, 2 * 0.81))
        elif tensor.is_floating_point():
            assert torch.equal(first[name], tensor), name
    told = [summary(run_dir)["init_from"] for run_dir in ended]
    assert told[0]["path"] == f"{root}/weights0.0.pt"
    assert len({entry["sha256"] for entry in told}) == 2
    assert summary(root / "run")["init_from"] is None


def test_after_the_first_round_the_file_is_not_needed(root: Path) -> None:
    source = root / "gone.pt"
    shutil.copyfile(root / "run" / "best.pt", source)
    settings = [*TINY, "num_rounds=6"]
    at_once = on_loopback(root, "warm_at_once", *settings, f"init_from={source}")
    stopped(root, "warm_cut", 3, *settings, f"init_from={source}")
    source.unlink()
    on_loopback(root, "warm_cut", *settings, f"init_from={root}/elsewhere.pt")
    assert model_bytes(root / "warm_cut") == model_bytes(at_once)
    assert summary(root / "warm_cut")["init_from"] == summary(at_once)["init_from"]
    cold = on_loopback(root, "cold", *settings)
    assert model_bytes(cold) != model_bytes(at_once)


def test_weights_of_another_model_are_refused_in_one_line(root: Path) -> None:
    with pytest.raises(UserError, match=r"^init_from=.*/run: .*best.pt has .* of shape .*, the model "):
        on_loopback(root, "refused", *TINY, f"init_from={root}/run", "model.hidden=8")
    assert not (root / "refused" / "config.yaml").exists()
