"""A new method is one short file that overrides `aggregate`; doctor, report and loopback need no other edit."""

import inspect
from pathlib import Path

import pytest
import torch

from llcg_dist.algorithms.registry import ALGORITHMS
from llcg_dist.cli.main import run
from llcg_dist.report import write_report
from tests.helpers import own_method
from tests.helpers.run_files import summary
from tests.helpers.training import train_in_process

TINY = ["experiment=tiny", "algorithm=psgd_pa", "cluster.num_machines=3", "partition=random"]


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ALGORITHMS, "median", own_method.CoordinateMedian)


def test_it_is_short() -> None:
    assert len(inspect.getsource(own_method).splitlines()) < 30


def test_it_trains_and_is_not_the_average(tmp_path: Path) -> None:
    parts = f"partition.root={tmp_path}/parts"
    for name in ("median", "psgd_pa"):
        train_in_process(*TINY, parts, f"algorithm.name={name}", f"run_dir={tmp_path}/{name}")
    median, average = (torch.load(tmp_path / name / "model.pt", weights_only=True) for name in ("median", "psgd_pa"))
    assert median.keys() == average.keys()
    assert not all(torch.equal(median[key], average[key]) for key in median)
    assert summary(tmp_path / "median")["algorithm"] == "median"
    page, _ = write_report([tmp_path / "median", tmp_path / "psgd_pa"])
    assert "median" in page.read_text()


def test_doctor_predicts_its_traffic(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["doctor", *TINY, "algorithm.name=median"]) == 0
    table = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines() if line.split()}
    assert table["median"] == table["psgd_pa"]
