"""llcg_plus and the options around it: bytes of plain averaging, exact resume, the same bits on either transport."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from llcg_dist import train
from llcg_dist.config.compose import load_config
from llcg_dist.data.graph import TRAIN
from llcg_dist.data.partition import store_path
from llcg_dist.data.store import read_shard
from llcg_dist.job.handshake import identity
from tests.helpers.jobs import rows, summary, torchrun

TINY = ["experiment=tiny", "cluster.num_machines=2", "num_rounds=4", "algorithm.K=3"]
CALIBRATED = ["algorithm=llcg_plus", "train.local_loss=calibrated"]
ALL_NEW = [*CALIBRATED, "train.lr_schedule=warmup_cosine", "train.lr_warmup=0.25", "train.lr_unit=steps"]


def alone(root: Path, name: str, *overrides: str) -> Path:
    torch.set_num_threads(1)
    run_dir = root / name
    settings = [*TINY, "cluster.backend=loopback", f"partition.root={root}/parts", f"run_dir={run_dir}", *overrides]
    train.run(load_config(settings), train.Rank())
    return run_dir


def model(run_dir: Path) -> bytes:
    return (run_dir / "model.pt").read_bytes()


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same three processes run all of these; names of one length, because the handshake tells the folder."""
    root = tmp_path_factory.mktemp("several")
    tiny = [*TINY, f"partition.root={root}/parts"]
    jobs = [
        [*tiny, "algorithm=psgd_pa", f"run_dir={root}/plain"],
        [*tiny, "algorithm=llcg_plus", f"run_dir={root}/xplus"],
        [*tiny, *CALIBRATED, f"run_dir={root}/calib"],
        [*tiny, *ALL_NEW, "algorithm.server_optimizer=nesterov", f"run_dir={root}/whole"],
    ]
    (root / "jobs.json").write_text(json.dumps(jobs))
    outcome = torchrun(3, str(Path(__file__).with_name("several.py")), str(root / "jobs.json"))
    assert outcome.code == 0, outcome.err
    return root


def messages(run_dir: Path, phase: str) -> list[dict]:
    return [m for m in json.loads((run_dir / "wire.json").read_text())["messages"] if m["phase"] == phase]


@pytest.mark.parametrize("name", ["xplus", "calib", "whole"])
def test_its_rounds_move_the_bytes_of_plain_averaging(processes: Path, name: str) -> None:
    assert messages(processes / name, "round") == messages(processes / "plain", "round")
    keys = ("bytes_up", "bytes_down", "feature_bytes", "gradient_bytes", "control_bytes", "exchanges")
    for plus, plain in zip(rows(processes / name), rows(processes / "plain"), strict=True):
        assert [plus[key] for key in keys] == [plain[key] for key in keys]


def test_all_that_calibration_adds_is_one_small_vector_at_the_start(processes: Path) -> None:
    """The shares of the tiny graph's four classes, as JSON, once to each of two machines."""
    store = store_path(load_config([*TINY, f"partition.root={processes}/parts"]))
    graph = read_shard(store / "global").graph
    labels = graph.labels[graph.nodes_in(TRAIN)]
    shares = [int((labels == c).sum()) / len(labels) for c in range(4)]
    added = len(json.dumps({"a": 1, "class_shares": shares})) - len(json.dumps({"a": 1}))
    # Ranks also compare their settings, so what these are called counts: once from each of two machines.
    overrides = {"plain": ["algorithm=psgd_pa"], "xplus": ["algorithm=llcg_plus"], "calib": CALIBRATED}
    told = {run: 2 * len(json.dumps(identity(load_config([*TINY, *more])))) for run, more in overrides.items()}
    start = {run: sum(m["bytes"] for m in messages(processes / run, "handshake")) - told[run] for run in told}
    assert start["plain"] == start["xplus"] == start["calib"] - 2 * added
    total = {run: summary(processes / run)["total_bytes"] - told[run] for run in told}
    assert total["plain"] == total["xplus"] == total["calib"] - 2 * added
    assert 0 < added < 200


@pytest.mark.parametrize(
    ("name", "overrides"), [("calib", CALIBRATED), ("whole", [*ALL_NEW, "algorithm.server_optimizer=nesterov"])]
)
def test_loopback_equals_processes(processes: Path, name: str, overrides: list[str]) -> None:
    assert model(alone(processes, f"loopback_{name}", *overrides)) == model(processes / name)


@pytest.mark.parametrize("kind", ["momentum", "nesterov", "adam"])
def test_a_resumed_run_ends_with_the_same_bits(tmp_path: Path, kind: str) -> None:
    settings = [*ALL_NEW, f"algorithm.server_optimizer={kind}", "num_rounds=6", "checkpoint.keep=10"]
    whole = alone(tmp_path, "whole", *settings)
    half = shutil.copytree(whole, tmp_path / "half")
    for path in (half / "checkpoints").iterdir():
        if int(path.name.split("-r")[1][:6]) > 3:
            path.unlink()
    for name in ("summary.json", "model.pt", "best.pt"):
        (half / name).unlink()
    assert model(alone(tmp_path, "half", *settings)) == model(whole)


def test_the_new_options_are_not_idle(tmp_path: Path) -> None:
    """Each changes the model; otherwise the tests above would hold for nothing."""
    changes = [
        [],
        ["train.local_loss=calibrated"],
        ["train.lr_schedule=cosine"],
        ["train.lr_schedule=cosine", "train.lr_unit=steps"],
        ["train.lr_schedule=warmup", "train.lr_warmup=0.5"],
        *([f"algorithm.server_optimizer={kind}"] for kind in ("momentum", "nesterov", "adam")),
    ]
    models = [model(alone(tmp_path, str(i), "algorithm=llcg", *change)) for i, change in enumerate(changes)]
    assert len(set(models)) == len(changes)


def test_one_machine_with_everything_has_nothing_to_calibrate(tmp_path: Path) -> None:
    plain = alone(tmp_path, "plain", "algorithm=single")
    assert model(alone(tmp_path, "calibrated", "algorithm=single", "train.local_loss=calibrated")) == model(plain)
