"""Loggers are copies of metrics.jsonl: every round once, also after a crash, and never the end of a training."""

import json
import os
import re
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llcg_dist import train
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.errors import PeerLostError, UserError
from llcg_dist.records import loggers
from llcg_dist.records.columns import sent_bytes
from llcg_dist.records.loggers import Loggers
from llcg_dist.records.loggers.base import saved_id
from llcg_dist.records.loggers.tensorboard import TensorBoard
from tests.helpers.run_files import rows, summary


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run of six rounds."""
    root = tmp_path_factory.mktemp("logged")
    train.run(config("none", root, "num_rounds=6", f"run_dir={root}/runs/first"), train.Rank())
    return root / "runs" / "first"


def config(logger: str, root: Path, *more: str) -> Config:
    return load_config(
        [
            "experiment=tiny",
            "partition=random",
            "cluster.backend=loopback",
            f"partition.root={root}/parts",
            f"logger={logger}",
            *more,
        ]
    )


def after_a_crash(name: str, finished: Path, tmp_path: Path) -> Path:
    """Five rounds are logged when the job dies; its checkpoint is that of round 3. Returns the new run's folder."""
    run_dir, recorded = tmp_path / "second", rows(finished)
    run_dir.mkdir()
    settings = config(name, tmp_path)
    if (child := os.fork()) == 0:
        before = Loggers(settings, run_dir, [])
        warnings = [before.round(row) for row in recorded[:5]]
        if name == "tensorboard":
            logger = (before._loggers or {})[name]
            assert isinstance(logger, TensorBoard)
            logger._writer.flush()
        os._exit(0 if warnings == [[]] * 5 else 1)
    assert os.waitpid(child, 0)[1] == 0
    again = Loggers(settings, run_dir, recorded[:3])
    for row in recorded[3:]:
        assert again.round(row) == []
    again.finish(summary(finished))
    return run_dir


def expected(finished: Path) -> tuple[list[int], list[int], list[float]]:
    """Rounds, cumulative bytes, validation scores."""
    recorded = rows(finished)
    sums: list[int] = []
    for row in recorded:
        sums.append(sent_bytes(row) + (sums[-1] if sums else 0))
    return [row["round"] for row in recorded], sums, [row["val_score"] for row in recorded]


def test_tensorboard_holds_every_round_once(finished: Path, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run_dir = after_a_crash("tensorboard", finished, tmp_path)
    events = EventAccumulator(str(run_dir / "tensorboard"))
    events.Reload()
    rounds, sums, scores = expected(finished)
    by_round, by_bytes = events.Scalars("scores/val_score"), events.Scalars("by_bytes/val_score")
    assert [event.step for event in by_round] == rounds
    assert [event.value for event in by_round] == pytest.approx(scores)
    assert [event.step for event in by_bytes] == sums
    assert [event.value for event in by_bytes] == pytest.approx(scores)
    assert {event.step for event in events.Scalars("seconds/seconds_round")} == set(rounds)
    shown = events.Tensors("comparison/text_summary")[0].tensor_proto.string_val[0].decode()
    assert "| second | llcg |" in shown
    assert "hparams" in events.summary_metadata["_hparams_/session_start_info"].plugin_data.plugin_name


def test_mlflow_holds_every_round_once(finished: Path, tmp_path: Path) -> None:
    import mlflow

    run_dir = after_a_crash("mlflow", finished, tmp_path)
    client = mlflow.MlflowClient((run_dir / "mlflow").as_uri())
    experiment = client.get_experiment_by_name("llcg_dist")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    rounds, sums, scores = expected(finished)
    for key, steps in {"val_score": rounds, "by_bytes/val_score": sums}.items():
        history = sorted(client.get_metric_history(run.info.run_id, key), key=lambda metric: metric.step)
        assert [metric.step for metric in history] == steps
        assert [metric.value for metric in history] == scores
    assert run.data.params["algorithm.K"] == "2.0"
    assert run.info.status == "FINISHED"
    assert "| second | llcg |" in mlflow.artifacts.load_text(f"{run.info.artifact_uri}/comparison.md")


def wandb_records(file: Path) -> Iterator[bytes]:
    """W&B's file is a LevelDB log: blocks of 32 KiB, in them pieces with a checksum, a length and a type."""
    content, at, record = file.read_bytes(), 7, b""
    while at + 7 <= len(content):
        if at % 32768 > 32768 - 7:  # no room for a header: the block is filled up
            at += 32768 - at % 32768
            continue
        length, kind = struct.unpack_from("<HB", content, at + 4)
        record += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last piece
            yield record
            record = b""


def test_wandb_holds_every_round_once(finished: Path, tmp_path: Path) -> None:
    from wandb.proto import wandb_internal_pb2

    record_type: Any = getattr(wandb_internal_pb2, "Record")  # noqa: B009 - protobuf makes it when it is loaded

    run_dir = after_a_crash("wandb", finished, tmp_path)
    (file,) = run_dir.glob("wandb/offline-run-*/*.wandb")
    records: list[Any] = []
    end = time.monotonic() + 30
    while not any(record.WhichOneof("record_type") == "exit" for record in records) and time.monotonic() < end:
        time.sleep(0.1)  # W&B's own process writes the file
        records = [record_type.FromString(data) for data in wandb_records(file)]
    history = [record.history.item for record in records if record.WhichOneof("record_type") == "history"]
    values = [{"/".join(item.nested_key): json.loads(item.value_json) for item in items} for items in history]
    columns = [[value[key] for value in values] for key in ("_step", "sent_bytes", "val_score")]
    assert tuple(columns) == expected(finished)


def test_a_run_compares_itself_with_those_beside_it(finished: Path) -> None:
    ended = summary(finished)
    (finished.parent / "torn").mkdir(exist_ok=True)
    (finished.parent / "torn" / "summary.json").write_text("{")
    (finished.parent / "gone").mkdir(exist_ok=True)
    (finished.parent / "gone" / "summary.json").symlink_to("nowhere")
    table = loggers.compare(ended | {"algorithm": "psgd_pa"}, finished.parent / "now")
    assert [row[:2] for row in table.rows] == [["now", "psgd_pa"], ["first", "llcg"]]
    assert loggers.compare(ended | {"dataset": "another"}, finished.parent / "now").rows[1:] == []


def test_auto_takes_tensorboard_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loggers.logger_names("auto") == ["tensorboard"]
    monkeypatch.setitem(loggers.MODULE_OF_LOGGER, "tensorboard", "no_such_library")
    assert loggers.logger_names("auto") == []
    assert loggers.logger_names("none") == []
    assert loggers.logger_names(["mlflow", "wandb"]) == ["mlflow", "wandb"]


def test_a_logger_that_is_not_there_is_a_users_mistake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(loggers.MODULE_OF_LOGGER, "wandb", "no_such_library")
    with pytest.raises(UserError, match=r"logger=wandb: not installed; pip install 'llcg_dist\[wandb\]'"):
        Loggers(config("wandb", tmp_path), tmp_path, [])
    for wrong in ("tensorbord", "[tensorboard,auto]", "3"):
        with pytest.raises(UserError, match="logger="):
            config(wrong, tmp_path)


def test_a_failing_logger_costs_one_warning(tmp_path: Path) -> None:
    """Where its folder should be lies a file."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "tensorboard").write_text("in the way")
    train.run(config("tensorboard", tmp_path, f"run_dir={tmp_path}/run"), train.Rank())
    first, *others = [row["warnings"] for row in rows(tmp_path / "run")]
    assert len(first) == 1
    assert first[0].startswith("logger=tensorboard gave up (")
    assert others == [[], []]
    assert summary(tmp_path / "run")["num_rounds"] == 3


FULL_DISK = """
import resource, signal, sys, threading
from llcg_dist.records.loggers import Loggers
from llcg_dist.config.compose import load_config
from pathlib import Path
run_dir = Path(sys.argv[1])
row = dict(round=0, bytes_up=1, bytes_down=1, gradient_bytes=0, feature_bytes=0, control_bytes=0, val_score=0.5)
loggers = Loggers(load_config(["logger=tensorboard"]), run_dir, [])
loggers.round(row)
size = next((run_dir / "tensorboard").iterdir()).stat().st_size
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20_000, size + 20_000))
given_up = next(r for r in range(1, 3000) if loggers.round(row | {"round": r}))
print(given_up, "rounds,", threading.active_count(), "thread left,", end=" ")
print([loggers.round(row | {"round": r}) for r in range(given_up + 1, 3000)].count([]) == 2999 - given_up)
"""


def test_a_full_disk_costs_one_warning(tmp_path: Path) -> None:
    """The event file may not grow: its writer's thread fails, some rounds later the rounds hear of it. Were the thread
    left behind, the process would be aborted now and then, where it exits while the thread prints its error."""
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\d+ rounds, 1 thread left, True\n", done.stdout), (done.stdout, done.stderr)
    assert done.stderr.count("logger=tensorboard gave up (") == 1


def test_a_lost_peer_is_no_loggers_business(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The heartbeat raises in whatever the main thread is doing."""
    first, second, *_ = rows(finished)
    open_ = Loggers(config("tensorboard", tmp_path), tmp_path, [])
    open_.round(first)

    def lose(*_: Any) -> None:
        raise PeerLostError("part 1 is silent")

    assert open_._loggers is not None
    monkeypatch.setattr(open_._loggers["tensorboard"], "round", lose)
    with pytest.raises(PeerLostError):
        open_.round(second)


@pytest.mark.parametrize("id_", ["x/../../..", "*", "", "a" * 65, 3, None])
def test_an_id_that_would_lead_out_of_the_folder(tmp_path: Path, id_: object) -> None:
    """The logger gives up; W&B's would have removed the folders that the id leads to."""
    (tmp_path / "wandb.json").write_text(json.dumps({"id": id_}))
    with pytest.raises(ValueError, match="wandb.json: id is not an id; remove the file"):
        saved_id(tmp_path / "wandb.json", "id")
    (tmp_path / "wandb.json").write_text(json.dumps({"id": "0a1b2c"}))
    assert saved_id(tmp_path / "wandb.json", "id") == "0a1b2c"
