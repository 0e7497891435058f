"""Rounded exchanges go on exactly where they stopped: what either end remembers is in its checkpoint."""

from pathlib import Path

import pytest
import torch

from llcg_dist.comm.error_feedback import QuantizedMachineCompressor
from llcg_dist.errors import TrainingError
from llcg_dist.job.checkpoint import CheckpointWriter
from llcg_dist.job.server import Server
from llcg_dist.records.rows import RoundResult
from tests.helpers.run_files import model_bytes, rows
from tests.helpers.training import train_in_process


def run(folder: Path, name: str, *overrides: str) -> None:
    settings = ["experiment=tiny", "partition=random", "num_rounds=8", "algorithm.K=2", "logger=none"]
    train_in_process(*settings, f"partition.root={folder}/parts", f"run_dir={folder}/{name}", *overrides)


def bytes_by_round(run_dir: Path) -> list[tuple[int, int, int]]:
    return [(row["round"], row["bytes_up"], row["bytes_down"]) for row in rows(run_dir)]


@pytest.mark.parametrize("method", ["full_sync", "ggs", "psgd_pa"])
def test_statistics_of_machines_survive_a_restart(tmp_path: Path, method: str) -> None:
    """Under full_sync the model crosses once, and the machines' statistics part from then on."""
    job = [f"algorithm={method}", "algorithm.batchnorm_stats=average", "algorithm.schedule=literal"]
    run(tmp_path, "at_once", *job)
    run(tmp_path, "twice", *job, "num_rounds=3")
    run(tmp_path, "twice", *job)
    assert model_bytes(tmp_path / "twice") == model_bytes(tmp_path / "at_once")


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
def test_what_rounding_kept_back_survives_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    """The first start ends after the machines were sent round 6; the second has only what was saved."""
    chosen = f"algorithm.exchange_dtype={dtype}"
    run(tmp_path, "at_once", chosen)
    record = Server.record

    def give_out(server: Server, result: RoundResult | None) -> None:
        record(server, result)
        if result and result.round == 5:
            raise TrainingError("the power is gone")

    monkeypatch.setattr(Server, "record", give_out)
    with pytest.raises(TrainingError, match="power"):
        run(tmp_path, "twice", chosen)
    monkeypatch.undo()
    CheckpointWriter.finish_all()
    run(tmp_path, "twice", chosen, "resume=must")
    assert model_bytes(tmp_path / "twice") == model_bytes(tmp_path / "at_once")
    assert bytes_by_round(tmp_path / "twice") == bytes_by_round(tmp_path / "at_once")


def test_forgetting_would_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison above can fail: a machine that loses its residual ends with another model."""
    chosen = "algorithm.exchange_dtype=int8"
    run(tmp_path, "intact", chosen)
    compress = QuantizedMachineCompressor.compress

    def forgetful(end: QuantizedMachineCompressor, theta: torch.Tensor) -> torch.Tensor:
        message = compress(end, theta)
        end.load_state(end.state() | {"residual": torch.zeros(len(theta))})
        return message

    monkeypatch.setattr(QuantizedMachineCompressor, "compress", forgetful)
    run(tmp_path, "forgetful", chosen)
    assert model_bytes(tmp_path / "forgetful") != model_bytes(tmp_path / "intact")
