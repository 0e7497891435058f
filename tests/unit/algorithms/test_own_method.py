"""A new method is one short file that overrides `aggregate`; doctor, report and loopback need no other edit."""

import inspect
from pathlib import Path

import pytest
import torch

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.cli.main import run
from llcg_dist.config.compose import load_config
from llcg_dist.errors import UserError
from llcg_dist.report import write_report
from tests.helpers import own_method
from tests.helpers.run_files import model_bytes, rows, summary
from tests.helpers.training import train_in_process

TINY = ["experiment=tiny", "cluster.num_machines=3", "partition=random"]
MEDIAN = ["algorithm=own", "algorithm.target=tests.helpers.own_method.CoordinateMedian"]
RETURNS = ["algorithm=own", "algorithm.target=tests.helpers.careless_method.Returns"]
AVERAGE = ["algorithm=psgd_pa"]


def test_it_is_short() -> None:
    assert len(inspect.getsource(own_method).splitlines()) < 30


def test_it_trains_and_is_not_the_average(tmp_path: Path) -> None:
    parts = f"partition.root={tmp_path}/parts"
    for name, method in (("median", MEDIAN), ("psgd_pa", AVERAGE)):
        train_in_process(*TINY, parts, *method, f"run_dir={tmp_path}/{name}")
    median, average = (torch.load(tmp_path / name / "model.pt", weights_only=True) for name in ("median", "psgd_pa"))
    assert median.keys() == average.keys()
    assert not all(torch.equal(median[key], average[key]) for key in median)
    assert summary(tmp_path / "median")["algorithm"] == "CoordinateMedian"
    page, _ = write_report([tmp_path / "median", tmp_path / "psgd_pa"])
    assert "CoordinateMedian" in page.read_text()


def test_doctor_predicts_its_traffic(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["doctor", *TINY, *MEDIAN]) == 0
    table = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines() if line.split()}
    assert table["CoordinateMedian"] == table["psgd_pa"]


@pytest.mark.parametrize(
    ("what", "returned"),
    [("nothing", "NoneType"), ("double", r"torch.float64 \[\d+\]"), ("half", r"torch.float32 \[\d+\]")],
)
def test_a_hook_that_returns_no_model_is_named(tmp_path: Path, what: str, returned: str) -> None:
    method = [
        "algorithm=own",
        "algorithm.target=tests.helpers.careless_method.Returns",
        f"algorithm.options.what={what}",
    ]
    with pytest.raises(UserError, match=rf"careless_method.Returns: aggregate returned {returned}, not a vector of"):
        train_in_process(*TINY, *method, f"partition.root={tmp_path}/parts", f"run_dir={tmp_path}/run")


def test_a_model_whose_outputs_are_not_finite_is_warned_of(tmp_path: Path) -> None:
    """Its parameters are: BatchNorm's variances lie below 0."""
    method = [
        "algorithm=own",
        "algorithm.target=tests.helpers.careless_method.Returns",
        "algorithm.options.what=variances",
    ]
    train_in_process(
        *TINY, *method, "algorithm.batchnorm_stats=average", "num_rounds=1", "model.norm=batch",
        f"partition.root={tmp_path}/parts", f"run_dir={tmp_path}/run",
    )  # fmt: skip
    (row,) = rows(tmp_path / "run")
    assert row["val_score"] is None
    assert row["warnings"] == ["the model's outputs are not finite: it has no scores"]


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["algorithm=own"], "algorithm.target: must be the dotted path of a subclass of llcg_dist.Algorithm"),
        (["algorithm=own", "algorithm.target=torch.nn.Linear"], "must be a subclass of llcg_dist.Algorithm"),
        (
            [*MEDIAN, "algorithm.options.mu=1"],
            "refused its options (mu): ",
        ),
        (["algorithm=llcg", MEDIAN[1]], "use algorithm=own; llcg is a method of ours"),
    ],
)
def test_what_is_refused(overrides: list[str], says: str) -> None:
    with pytest.raises(UserError) as refused:
        build_algorithm(load_config(overrides))
    assert says in str(refused.value)


def test_a_method_may_change_the_gradient_of_a_machine(tmp_path: Path) -> None:
    """FedProx with mu=0 is plain averaging to the bit; with another mu it is not."""
    settings = [*TINY, f"partition.root={tmp_path}/parts"]
    prox = ["algorithm=own", "algorithm.target=examples.own_method.FedProx"]
    train_in_process(*settings, *AVERAGE, f"run_dir={tmp_path}/average")
    for mu in (0.0, 0.5):
        train_in_process(*settings, *prox, f"algorithm.options.mu={mu}", f"run_dir={tmp_path}/prox{mu}")
    assert model_bytes(tmp_path / "prox0.0") == model_bytes(tmp_path / "average")
    assert model_bytes(tmp_path / "prox0.5") != model_bytes(tmp_path / "average")


def test_a_model_that_is_changed_in_place_crosses_all_the_same(tmp_path: Path) -> None:
    method = ["algorithm=own", "algorithm.target=tests.helpers.careless_method.KeepsItsBuffer", "algorithm.S=1"]
    for copies in ("true", "false"):
        settings = [f"algorithm.options.copies={copies}", f"partition.root={tmp_path}/parts"]
        train_in_process(*TINY, *method, *settings, f"run_dir={tmp_path}/{copies}")
    assert model_bytes(tmp_path / "false") == model_bytes(tmp_path / "true")
    assert [row["bytes_down"] for row in rows(tmp_path / "false")] == [
        row["bytes_down"] for row in rows(tmp_path / "true")
    ]
