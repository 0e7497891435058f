"""llcg predict on another graph than the run's own."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from llcg_dist.cli.main import run
from llcg_dist.errors import UserError
from llcg_dist.train import main as train
from tests.helpers.predicting import NAMES, predictions, settings, write_named_graph


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder: files with words for ids and classes, and a run trained on them."""
    folder = tmp_path_factory.mktemp("home")
    write_named_graph(folder)
    return folder


@pytest.fixture(scope="module")
def run_dir(home: Path) -> Path:
    path = home / "run"
    assert train([*settings(home), f"run_dir={path}"]) == 0
    return path


def new_graph(home: Path, features: pd.DataFrame) -> list[str]:
    features.to_csv(home / "new.csv", index=False)
    return ["dataset=files", f"dataset.edges={home / 'edges.parquet'}", f"dataset.features={home / 'new.csv'}"]


def test_a_new_graph_needs_no_labels(home: Path, run_dir: Path) -> None:
    """The same nodes and edges in another order are a new graph with the same answers."""
    shuffled = pd.read_csv(home / "features.csv").sample(frac=1, random_state=1)
    arguments = [*new_graph(home, shuffled), f"out={home / 'new_predictions.csv'}"]
    new = predictions(run_dir, *arguments)
    assert new["node"].tolist() == shuffled["node"].tolist()
    old = predictions(run_dir).set_index("node").loc[new["node"]].reset_index()
    assert new["class"].tolist() == old["class"].tolist()
    assert np.allclose(new["probability"], old["probability"], atol=1e-5)


def test_a_part_of_the_graph_is_another_graph(home: Path, run_dir: Path) -> None:
    few = pd.read_csv(home / "features.csv").head(2)
    pd.DataFrame({"src": few["node"][:1], "dst": few["node"][1:].to_numpy()}).to_csv(home / "one.csv", index=False)
    arguments = [*new_graph(home, few), f"dataset.edges={home / 'one.csv'}", f"out={home / 'few.csv'}"]
    assert predictions(run_dir, *arguments)["node"].tolist() == few["node"].tolist()


def test_predictions_that_are_replaced_are_named(home: Path, run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = new_graph(home, pd.read_csv(home / "features.csv"))
    expected = f"{run_dir}/predictions.csv: the predictions that are there are replaced; out=FILE writes to another"
    (run_dir / "predictions.csv").unlink(missing_ok=True)
    said = []
    for arguments in ([], [], graph, [*graph, f"out={run_dir / 'predictions.csv'}"]):
        assert run(["predict", f"run_dir={run_dir}", *arguments]) == 0
        said.append(expected in capsys.readouterr().out)
    assert said == [False, False, True, False]


def test_features_of_another_width(home: Path, run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Through the command: exit code 2 and one line."""
    arguments = new_graph(home, pd.read_csv(home / "features.csv").drop(columns="fourth"))
    assert run(["predict", f"run_dir={run_dir}", *arguments]) == 2
    widths = f"3 features a node, the model in {run_dir} was trained with 4"
    expected = f"llcg: error: dataset.features={home}/new.csv: {widths}; the columns must be the same\n"
    assert capsys.readouterr().err == expected


def test_features_in_another_order(home: Path, run_dir: Path) -> None:
    mixed = pd.read_csv(home / "features.csv")[["node", "first", "third", "second", "fourth"]]
    rule = f"feature column 2 is 'third', the model in {run_dir} was trained with 'second' in that place"
    with pytest.raises(UserError, match=rule):
        predictions(run_dir, *new_graph(home, mixed))


def test_a_bad_new_graph_is_told_like_any(home: Path, run_dir: Path) -> None:
    spoiled = pd.read_csv(home / "features.csv").astype({"first": object})
    spoiled.loc[4, "first"] = "inf"
    with pytest.raises(UserError, match=f"^{home}/new.csv: line 6: column 'first' is inf; it must be a finite number"):
        predictions(run_dir, *new_graph(home, spoiled))
    with pytest.raises(UserError, match=r"^dataset.features: must name a file"):
        predictions(run_dir, "dataset=files", f"dataset.edges={home / 'edges.parquet'}")


def test_a_new_graph_with_labels_gets_class_results(
    home: Path, run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of all nodes that have a label, although these are two of the three classes; the run's own results stay."""
    recorded = (run_dir / "classes.json").read_bytes()
    labels = pd.read_csv(home / "labels.csv")
    labels = labels[labels["label"] != "bee"].dropna()
    labels.to_csv(home / "some.csv", index=False)
    graph = [*new_graph(home, pd.read_csv(home / "features.csv")), f"dataset.labels={home / 'some.csv'}"]
    assert run(["predict", f"run_dir={run_dir}", *graph, f"out={home / 'l.csv'}"]) == 0
    predicted = pd.read_csv(home / "l.csv").set_index("node")["class"]
    test = json.loads((home / "l_classes.json").read_text())["test"]
    assert [(row["class"], row["support"]) for row in test["classes"]] == [
        (name, int((labels["label"] == name).sum())) for name in NAMES
    ]
    hits = (predicted[labels["node"]].to_numpy() == labels["label"].to_numpy()).sum()
    assert sum(test["confusion"][i][i] for i in range(3)) == hits
    assert "labelled nodes of each class" in capsys.readouterr().out
    assert (run_dir / "classes.json").read_bytes() == recorded


def test_labels_as_numbers_and_a_split(home: Path, run_dir: Path, tmp_path: Path) -> None:
    """Words of the model in an .npy file; of those nodes only that the split names."""
    words = pd.read_csv(home / "labels.csv", keep_default_na=False)["label"].to_numpy(np.str_)
    np.save(tmp_path / "labels.npy", words)
    split = np.full(len(words), -1)
    split[[0, 1, 2]], split[[4, 6]] = 2, 1
    np.save(tmp_path / "split.npy", split)
    given = [f"dataset.{key}={tmp_path / key}.npy" for key in ("labels", "split")]
    predictions(run_dir, *new_graph(home, pd.read_csv(home / "features.csv")), *given, f"out={tmp_path / 'p.csv'}")
    classes = json.loads((tmp_path / "p_classes.json").read_text())
    assert (classes["val"]["nodes"], classes["test"]["nodes"]) == (2, 3)


def test_labels_that_the_model_does_not_know(home: Path, run_dir: Path, tmp_path: Path) -> None:
    graph = new_graph(home, pd.read_csv(home / "features.csv"))
    labels = pd.read_csv(home / "labels.csv").dropna().replace("cow", "dog")
    labels.to_csv(tmp_path / "dogs.csv", index=False)
    rule = f"^{tmp_path}/dogs.csv: line .*: column 'label' is dog, no class of the model: it knows ant, bee, cow"
    with pytest.raises(UserError, match=rule):
        predictions(run_dir, *graph, f"dataset.labels={tmp_path / 'dogs.csv'}")
    with pytest.raises(UserError, match="has the labels 'ant', 'bee', 'cow', 'odd'; the model was trained with"):
        predictions(run_dir, *graph, f"dataset.labels={home / 'several.csv'}")
