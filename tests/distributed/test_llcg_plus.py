"""llcg_plus and the options around it: bytes of plain averaging, exact resume, the same bits on either transport."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from llcg_dist.config.compose import load_config
from llcg_dist.data.graph import TRAIN
from llcg_dist.data.store import read_shard
from llcg_dist.job.agreement import Identity
from llcg_dist.job.handshake import to_json
from tests.helpers.run_files import messages, model_bytes, rows, summary
from tests.helpers.training import TINY, assert_loopback_equals_ranks, cut, in_ranks, on_loopback

CALIBRATED = ["algorithm=llcg_plus", "train.local_loss=calibrated"]
SCHEDULED = [*CALIBRATED, "train.lr_schedule=warmup_cosine", "train.lr_warmup=0.25", "train.lr_unit=steps"]
MIXED = ["algorithm=llcg_plus", "algorithm.aggregate=learned", "evaluate.ema=0.5", "train.lr_schedule=cosine_end"]
# Names of one length, because the handshake tells the folder.
JOBS = {
    "plain": ["algorithm=psgd_pa"],
    "xplus": ["algorithm=llcg_plus"],
    "calib": CALIBRATED,
    "outer": [*SCHEDULED, "algorithm.server_optimizer=nesterov"],
    "mixed": MIXED,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_ranks(tmp_path_factory.mktemp("llcg_plus"), {name: [*TINY, *JOBS[name]] for name in JOBS})


@pytest.mark.parametrize("name", ["xplus", "calib", "outer", "mixed"])
def test_its_rounds_move_the_bytes_of_plain_averaging(runs: Path, name: str) -> None:
    assert messages(runs / name) == messages(runs / "plain")
    keys = ("bytes_up", "bytes_down", "feature_bytes", "gradient_bytes", "control_bytes", "exchanges")
    for plus, plain in zip(rows(runs / name), rows(runs / "plain"), strict=True):
        assert [plus[key] for key in keys] == [plain[key] for key in keys]


def test_all_that_calibration_adds_is_one_small_vector_at_the_start(runs: Path) -> None:
    """The shares of the tiny graph's four classes, as JSON, once to each of two machines."""
    graph = read_shard(cut(*TINY, f"partition.root={runs}/parts") / "global").graph
    labels = graph.labels[graph.nodes_in(TRAIN)]
    shares = [int((labels == c).sum()) / len(labels) for c in range(4)]
    added = len(json.dumps(shares)) - len(json.dumps(None))
    # Ranks also compare their settings, so what these are called counts: once from each of two machines.
    told = {
        run: 2 * len(json.dumps(to_json(Identity.of(load_config([*TINY, *JOBS[run]])))))
        for run in ("plain", "xplus", "calib")
    }
    start = {run: sum(m["bytes"] for m in messages(runs / run, "handshake")) - told[run] for run in told}
    assert start["plain"] == start["xplus"] == start["calib"] - 2 * added
    total = {run: summary(runs / run)["total_bytes"] - told[run] for run in told}
    assert total["plain"] == total["xplus"] == total["calib"] - 2 * added
    assert 0 < added < 200


@pytest.mark.parametrize("name", ["xplus", "calib", "outer", "mixed"])
def test_loopback_equals_processes(runs: Path, name: str) -> None:
    assert_loopback_equals_ranks(runs, name, *TINY, *JOBS[name])


OUTER = {kind: [*SCHEDULED, f"algorithm.server_optimizer={kind}"] for kind in ("momentum", "nesterov", "adam")}
LONG = [pytest.param(OUTER[kind], id=kind, marks=pytest.mark.full) for kind in ("nesterov", "adam")]


@pytest.mark.parametrize(
    "options", [pytest.param(OUTER["momentum"], id="momentum"), pytest.param(MIXED, id="mixed"), *LONG]
)
def test_a_resumed_run_ends_with_the_same_bits(tmp_path: Path, options: list[str]) -> None:
    settings = [*TINY, *options, "num_rounds=6", "checkpoint.keep=10"]
    undisturbed = on_loopback(tmp_path, "undisturbed", *settings)
    half = shutil.copytree(undisturbed, tmp_path / "half")
    for path in (half / "checkpoints").iterdir():
        if int(path.name.split("-r")[1][:6]) > 3:
            path.unlink()
    for name in ("summary.json", "model.pt", "best.pt"):
        (half / name).unlink()
    assert model_bytes(on_loopback(tmp_path, "half", *settings)) == model_bytes(undisturbed)


def test_the_new_options_are_not_idle(tmp_path: Path) -> None:
    """Each changes the model; otherwise the tests above would hold for nothing."""
    changes = [
        [],
        ["train.local_loss=calibrated"],
        ["train.lr_schedule=cosine"],
        ["train.lr_schedule=cosine", "train.lr_unit=steps"],
        ["train.lr_schedule=warmup", "train.lr_warmup=0.5"],
        ["train.lr_schedule=cosine_end", "train.lr_end=0.5"],
        ["algorithm.aggregate=learned"],
        ["evaluate.ema=0.5"],
        *([f"algorithm.server_optimizer={kind}"] for kind in ("momentum", "nesterov", "adam")),
    ]
    runs = [on_loopback(tmp_path, str(i), *TINY, "algorithm=llcg", *change) for i, change in enumerate(changes)]
    assert len({model_bytes(run) for run in runs}) == len(changes)


def test_the_average_of_the_models_is_what_is_saved_and_training_knows_nothing_of_it(tmp_path: Path) -> None:
    settings = [*TINY, "algorithm=psgd_pa", "checkpoint.keep=10"]
    plain = on_loopback(tmp_path, "plain", *settings)
    averaged = on_loopback(tmp_path, "averaged", *settings, "evaluate.ema=0.5")
    models = [thetas(plain), thetas(averaged)]
    assert all(torch.equal(*pair) for pair in zip(*models, strict=True))
    weights = torch.tensor([1.0, 2.0, 4.0, 8.0]) / 15
    expected = weights @ torch.stack(models[0])
    saved = torch.load(averaged / "model.pt", weights_only=True)
    found = torch.cat([tensor.reshape(-1) for tensor in saved.values() if tensor.is_floating_point()])
    assert torch.allclose(found, expected, atol=1e-6)
    assert not torch.allclose(found, models[0][-1], atol=1e-3)


def thetas(run_dir: Path) -> list[torch.Tensor]:
    """The model of every round, by the server's checkpoints."""
    files = sorted((run_dir / "checkpoints").glob("server-*.pt"))
    return [torch.load(file, weights_only=True)["theta"] for file in files]


def test_one_machine_with_everything_has_nothing_to_calibrate(tmp_path: Path) -> None:
    single = [*TINY, "algorithm=single"]
    plain = on_loopback(tmp_path, "plain", *single)
    assert model_bytes(on_loopback(tmp_path, "calibrated", *single, "train.local_loss=calibrated")) == model_bytes(
        plain
    )
