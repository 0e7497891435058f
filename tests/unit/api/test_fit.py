"""fit and load on loopback: the run, what it gives back, and what is refused."""

import ast
import logging
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

import llcg_dist
from llcg_dist import Run, UserError
from llcg_dist.api import here
from llcg_dist.errors import PeerLostError
from llcg_dist.predict import predict
from llcg_dist.training.screening import Models
from tests.helpers.graphs import community_graph
from tests.helpers.own_data import data_of
from tests.helpers.run_files import summary

GRAPH = community_graph(90)
DATA = data_of(GRAPH)
QUICK = {"model.hidden": 8, "algorithm.K": 2, "cluster.backend": "loopback", "partition": "random", "logger": "none"}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default folders of runs and parts are below the current one."""
    monkeypatch.chdir(tmp_path)


def fit(data: Any = DATA, overrides: dict[str, Any] | None = None, **arguments: Any) -> Run:
    arguments = {"machines": 2, "rounds": 2} | arguments
    return llcg_dist.fit(data, overrides=QUICK | (overrides or {}), **arguments)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("home")
    return fit(run_dir=folder / "run", rounds=4, overrides={"partition.root": folder / "parts"})


def test_its_records(run: Run) -> None:
    assert run.summary == summary(run.path)
    assert run.history["round"].tolist() == [1, 2, 3, 4]
    assert run.history["val_score"].max() == run.summary["best_val_score"]
    assert run.config.cluster.num_machines == 2


def test_a_run_is_opened_again(run: Run) -> None:
    again = llcg_dist.load(str(run.path))
    assert again.summary == run.summary
    assert again.predict().equals(run.predict())
    assert repr(again) == f"llcg_dist.load('{run.path}')"


def test_predictions_are_those_of_the_command(run: Run, tmp_path: Path) -> None:
    for which in ("best", "final"):
        out = predict([f"run_dir={run.path}", f"which={which}", f"out={tmp_path / which}.parquet"])
        assert run.predict(which=which).equals(pd.read_parquet(out))


def test_predictions_for_some_nodes(run: Run) -> None:
    table = run.predict()
    few = run.predict(nodes=[7, 3, 80])
    assert few["node"].tolist() == [7, 3, 80]
    assert few["class"].tolist() == table["class"][[7, 3, 80]].tolist()
    assert np.allclose(few["probability"], table["probability"][[7, 3, 80]], rtol=1e-5)
    assert run.predict(nodes=DATA.test_mask)["node"].tolist() == GRAPH.nodes_in(3).tolist()
    assert run.predict(nodes=torch.tensor(5))["node"].tolist() == [5]
    for nobody in (run.predict(nodes=[]), run.predict(nodes=np.zeros(90, dtype=bool))):
        assert nobody.dtypes.equals(table.dtypes)
        assert len(nobody) == 0
    with pytest.raises(UserError, match=r"^nodes: .*90.* is not a node of this graph of 90$"):
        run.predict(nodes=[1, 90])
    for nodes in (np.ones(89, dtype=bool), [[1, 2], [3, 4]]):
        with pytest.raises(UserError, match=r"^nodes: must be a list of nodes, or a mask \[90\], not (bool|int64)\["):
            run.predict(nodes=nodes)


def test_predictions_on_another_graph(run: Run, tmp_path: Path) -> None:
    new = data_of(community_graph(40, seed=1), y=None, train_mask=None, val_mask=None, test_mask=None)
    table = run.predict(new)
    assert table["node"].tolist() == list(range(40))
    torch.save(new, tmp_path / "new.pt")
    saved = ["dataset=pyg", f"dataset.path={tmp_path / 'new.pt'}"]
    assert run.predict(saved).equals(table)
    out = predict([f"run_dir={run.path}", *saved, f"out={tmp_path / 'new.parquet'}"])
    assert pd.read_parquet(out).equals(table)
    assert run.predict("dataset=own dataset.target=tests.helpers.own_data.load").shape == (120, 3)
    with torch.no_grad():
        assert run.model()(new.x, new.edge_index).argmax(dim=1).tolist() == table["class"].tolist()
    with pytest.raises(UserError, match=r"^data: 3 features a node, the model in .* was trained with 5"):
        run.predict(data_of(GRAPH, x=torch.ones(90, 3)))


def test_the_model(run: Run) -> None:
    """An ordinary module: the classes of `llcg predict`, and its probabilities."""
    for which in ("best", "final"):
        table, model = run.predict(which=which), run.model(which)
        assert not model.training
        probability = model(DATA.x, DATA.edge_index).softmax(dim=1).detach()
        assert probability.argmax(dim=1).tolist() == table["class"].tolist()
        assert np.allclose(probability.max(dim=1).values, table["probability"], rtol=1e-4)
    with pytest.raises(UserError, match="^which=last: must be best or final$"):
        run.model("last")


def test_the_model_belongs_to_the_caller(run: Run) -> None:
    before, model = run.predict(), run.model()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert run.predict().equals(before)


def test_the_report(run: Run) -> None:
    page = run.report()
    assert page == run.path / "report" / "index.html"
    assert page.read_text().startswith("<!doctype html>")


def test_a_finished_run_is_returned_and_an_extended_one_goes_on(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    copy, parts = Path("copy"), run.path.parent / "parts"
    shutil.copytree(run.path, copy)
    same: dict[str, Any] = {"run_dir": "copy", "overrides": {"partition.root": parts}}
    model = (copy / "model.pt").stat().st_mtime_ns
    assert fit(rounds=4, **same).summary == run.summary
    assert "holds a finished run" in capsys.readouterr().out
    assert (copy / "model.pt").stat().st_mtime_ns == model
    assert fit(rounds=5, **same).history["round"].tolist() == [1, 2, 3, 4, 5]
    assert "going on after round 4" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"^run_dir=copy: holds a run with other settings: dataset.digest"):
        fit(data_of(community_graph(91)), rounds=5, **same)


def test_torchs_state_is_given_back() -> None:
    torch.manual_seed(3)
    torch.set_num_threads(2)  # a rank has one
    before, log = torch.get_rng_state(), logging.getLogger("llcg_dist")
    state = list(log.handlers), log.level, torch.get_num_threads()
    fit()
    after = list(log.handlers), log.level, torch.get_num_threads()
    torch.set_num_threads(1)
    assert torch.equal(torch.get_rng_state(), before)
    assert after == state
    assert (torch.tensor([1e-39]) * 1).item() != 0


def test_each_run_has_a_folder_of_its_own() -> None:
    """Also where several start within a second, whose name the folders have."""
    paths = [fit(rounds=1).path for _ in range(3)]
    assert len(set(paths)) == 3
    assert {path.parent for path in paths} == {Path.cwd() / "runs"}
    assert len(list(Path("partitions").glob("memory_*"))) == 1


def test_a_method_that_exists_in_this_process_only() -> None:
    called = []

    class Median(llcg_dist.Algorithm):
        def aggregate(self, theta: Tensor, models: Models) -> Tensor:
            called.append(len(models.vectors))
            return torch.stack(models.vectors).quantile(0.5, dim=0)

    fit(algorithm=Median)
    assert called == [2, 2]
    with pytest.raises(UserError, match=r"^algorithm: Median exists in this process only"):
        fit(algorithm=Median, overrides={"cluster.backend": "gloo"})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"data": data_of(GRAPH, x=None)}, "data: has no x"),
        ({"data": "dataset=moon"}, "dataset=moon: must be one of"),
        ({"data": "synthetic"}, "synthetic: "),
        ({"model": "moon"}, "model=moon: must be one of"),
        ({"algorithm": "no_package.Method"}, "algorithm.target=no_package.Method: cannot be imported"),
        ({"algorithm": dict}, "algorithm.target=builtins.dict: must be a subclass of llcg_dist.Algorithm"),
        ({"machines": 0}, "cluster.num_machines=0"),
        ({"machines": 91}, "cluster.num_machines=91: more machines than the graph's 90 nodes"),
        ({"overrides": {"algorithm.k": 2}}, "unknown key algorithm.k; did you mean algorithm.K?"),
        ({"overrides": {"dataset": "synthetic"}}, "dataset=synthetic: data is a graph already"),
        ({"overrides": {"resume": "must"}}, "resume=must: there is no run to continue"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing_behind(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as refused:
        fit(**arguments)
    assert str(refused.value).startswith(message)
    assert len(str(refused.value).splitlines()) == 1
    assert not Path("runs").exists() or not list(Path("runs").iterdir())


def test_folders_without_a_run(tmp_path: Path, run: Run) -> None:
    with pytest.raises(UserError, match=r"no file .*config.yaml; name the folder of a finished run"):
        llcg_dist.load(tmp_path)
    shutil.copy(run.path / "config.yaml", tmp_path)
    with pytest.raises(UserError, match=r"^run_dir=.*: has no summary: the run is not finished"):
        _ = llcg_dist.load(tmp_path).summary
    assert len(llcg_dist.load(tmp_path).history) == 0


def test_lost_parts_of_a_graph_in_memory(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^dataset=memory: .* its parts in partition.root are needed"):
        llcg_dist.load(run.path, partition_root=tmp_path / "nowhere").predict()


def test_a_hydra_applications_own_state_stays() -> None:
    from hydra import initialize
    from hydra.core.global_hydra import GlobalHydra

    with initialize(None, version_base="1.3"):
        theirs = GlobalHydra.instance().hydra
        fit(rounds=1)
        assert GlobalHydra.instance().hydra is theirs


def test_what_the_package_offers() -> None:
    assert set(llcg_dist.__all__) <= set(dir(llcg_dist))
    assert all(getattr(llcg_dist, name) is not None for name in llcg_dist.__all__)
    stub = ast.parse((Path(llcg_dist.__file__).parent / "__init__.pyi").read_text()).body
    typed = {alias.name for node in stub if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed | {"__version__"} == set(llcg_dist.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = llcg_dist.nothing  # type: ignore[attr-defined]
    program = "import sys, llcg_dist; sys.exit(sum(name in sys.modules for name in ('torch', 'pandas', 'hydra')))"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize(
    ("raised", "line"),
    [(PeerLostError("2 machines are left"), "2 machines are left"), (OSError(28, "full", "x"), "x: full")],
)
def test_what_a_job_in_this_process_fails_with(monkeypatch: pytest.MonkeyPatch, raised: Exception, line: str) -> None:
    """The same exceptions as from a job of several."""

    def fails(*_: Any) -> None:
        raise raised

    monkeypatch.setattr(here, "run", fails)
    with pytest.raises(llcg_dist.TrainingError, match=line):
        fit()
