"""llcg predict: the user's ids and class names, the scores of training, and the run's own model."""

import errno
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from llcg_dist.api.run import load
from llcg_dist.cli.main import run
from llcg_dist.errors import UserError
from llcg_dist.predict import read_run_config
from llcg_dist.train import main as train
from tests.helpers.predicting import NAMES, predictions, settings, write_named_graph
from tests.helpers.run_files import summary


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder: files with words for ids and classes, and runs trained on them."""
    folder = tmp_path_factory.mktemp("home")
    write_named_graph(folder)
    return folder


@pytest.fixture(scope="module")
def run_dir(home: Path) -> Path:
    path = home / "run"
    assert train([*settings(home), f"run_dir={path}"]) == 0
    return path


def split_of(home: Path) -> pd.Series:
    """What the store drew: the split of every node by name."""
    (store,) = (home / "parts").glob("files*")
    names = np.load(store / "global" / "node_names.npy")
    return pd.Series(np.load(store / "global" / "split.npy"), index=names)


def test_class_and_probability_of_every_node(home: Path, run_dir: Path) -> None:
    table = predictions(run_dir)
    features, labels = pd.read_csv(home / "features.csv"), pd.read_csv(home / "labels.csv")
    assert table.columns.tolist() == ["node", "class", "probability"]
    assert table["node"].tolist() == features["node"].tolist()
    assert set(table["class"]) <= set(NAMES)
    assert table["probability"].between(1 / 3, 1).all()
    right = (table["class"] == labels["label"])[split_of(home)[table["node"]].to_numpy() == 3]
    assert right.mean() == pytest.approx(summary(run_dir)["test_score_at_best_val"])
    assert right.mean() > 0.5


def recorded_classes(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def test_the_scores_of_every_class(home: Path, run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Written at the end of the run, and again by predict, which shows those of the test nodes."""
    written = recorded_classes(run_dir / "classes.json")
    assert written["model"] == "best"
    test = written["test"]
    assert [row["class"] for row in test["classes"]] == NAMES.tolist()
    hits = sum(test["confusion"][i][i] for i in range(3))
    assert hits / test["nodes"] == pytest.approx(summary(run_dir)["test_score_at_best_val"])
    val = written["val"]
    assert sum(val["confusion"][i][i] for i in range(3)) / val["nodes"] == pytest.approx(
        summary(run_dir)["best_val_score"]
    )
    (run_dir / "classes.json").rename(run_dir / "earlier.json")  # as in a run of an earlier version
    assert run(["predict", f"run_dir={run_dir}", f"out={home / 'shown.csv'}"]) == 0
    said = capsys.readouterr().out
    for row in test["classes"]:
        assert f"{100 * row['f1']:.2f}" in said
    for path in (home / "shown_classes.json", run_dir / "classes.json"):
        assert recorded_classes(path)["test"] == test
    assert run(["predict", f"run_dir={run_dir}", f"out={home / 'f.csv'}", "which=final"]) == 0
    final = recorded_classes(home / "f_classes.json")
    assert final["model"] == "final"
    hits = sum(final["test"]["confusion"][i][i] for i in range(3))
    assert hits / final["test"]["nodes"] == pytest.approx(summary(run_dir)["final_test_score"])
    assert recorded_classes(run_dir / "classes.json")["model"] == "best"


def test_the_last_rounds_model(home: Path, run_dir: Path) -> None:
    table = predictions(run_dir, "which=final", f"out={home / 'final.parquet'}")
    labels = pd.read_csv(home / "labels.csv")["label"]
    right = (table["class"] == labels)[split_of(home)[table["node"]].to_numpy() == 3]
    assert right.mean() == pytest.approx(summary(run_dir)["final_test_score"])
    assert (table["probability"] - predictions(run_dir)["probability"]).abs().max() > 1e-3


def test_parquet_says_what_csv_says(home: Path, run_dir: Path) -> None:
    csv, parquet = predictions(run_dir), predictions(run_dir, f"out={home / 'deep' / 'p.parquet'}")
    assert parquet["node"].tolist() == csv["node"].tolist()
    assert parquet["class"].tolist() == csv["class"].tolist()
    assert np.allclose(parquet["probability"], csv["probability"], rtol=1e-5)


def test_several_labels_a_node(home: Path, tmp_path: Path) -> None:
    parts = f"partition.root={tmp_path / 'parts'}"
    assert train([*settings(home, labels="several.csv"), f"run_dir={tmp_path}", parts]) == 0
    table = predictions(tmp_path)
    true = pd.read_csv(home / "several.csv")[[*NAMES, "odd"]].to_numpy()
    names = [*NAMES, "odd"]
    assert table.columns.tolist() == ["node", "class", *(f"probability_{name}" for name in names)]
    probability = table[[f"probability_{name}" for name in names]].to_numpy()
    assert ((probability >= 0) & (probability <= 1)).all()
    said = [";".join(name for name, p in zip(names, row, strict=True) if p > 0.5) for row in probability]
    assert table["class"].fillna("").tolist() == said
    (store,) = tmp_path.glob("parts/files*")
    test = np.load(store / "global" / "split.npy") == 3
    predicted, right = probability[test] > 0.5, true[test] == 1
    classes = recorded_classes(tmp_path / "classes.json")
    assert classes["task"] == "multilabel"
    hits = (predicted & right).sum(axis=0).tolist()
    assert [(row["class"], row["true_positives"]) for row in classes["test"]["classes"]] == [
        *zip(names, hits, strict=True)
    ]
    f1 = 2 * (predicted & right).sum() / (predicted.sum() + right.sum())
    assert f1 == pytest.approx(summary(tmp_path)["test_score_at_best_val"])


def test_a_dataset_without_names_has_numbers(tmp_path: Path) -> None:
    """The nodes of a subset keep the numbers that they have in the full graph. Lost parts are made again."""
    overrides = ["experiment=tiny", "dataset.subset=50", "partition=random", "algorithm=single"]
    assert train([*overrides, f"run_dir={tmp_path / 'run'}", f"partition.root={tmp_path / 'parts'}"]) == 0
    (store,) = (tmp_path / "parts").glob("synthetic*")
    names = np.load(store / "global" / "node_names.npy")
    first = predictions(tmp_path / "run")
    assert first["node"].tolist() == names.tolist()
    assert names.max() > 50
    assert set(first["class"]) <= {0, 1, 2, 3}
    shutil.rmtree(tmp_path / "parts")
    assert predictions(tmp_path / "run").equals(first)


def test_parts_that_were_moved(home: Path, run_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(home / "parts", tmp_path / "elsewhere")
    copy = tmp_path / "run"
    shutil.copytree(run_dir, copy)
    text = (copy / "config.yaml").read_text()
    (copy / "config.yaml").write_text(text.replace(str(home), "/nowhere"))
    with pytest.raises(UserError, match="^/nowhere/edges.parquet: no such file"):
        predictions(copy, f"partition.root={tmp_path / 'none'}")
    assert read_run_config(copy, {"partition.root": str(tmp_path)}).partition.root == str(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ([], "run_dir: must name the folder of a finished run"),
        (["run_dir="], "run_dir: must name the folder of a finished run"),
        (["run_dir=nowhere"], "run_dir=nowhere: no file nowhere/config.yaml"),
        (["run_dir=RUN", "which=worst"], "which=worst: must be best or final"),
        (["run_dir=RUN", "out=p.txt"], "out=p.txt: must end in .csv or .parquet"),
        (["run_dir=RUN", "best"], "best: settings of llcg predict are written key=value"),
        (["run_dir=RUN", "seed=3"], "seed: not a setting of llcg predict"),
        (["run_dir=RUN", "dataset=planetoid", "dataset.root=/no"], "dataset=planetoid: no file /no/Cora"),
        (["run_dir=RUN", "dataset=files", "dataset.edgs=x"], "unknown key dataset.edgs"),
        (["run_dir=RUN", "out=/dev/null/p.csv"], "out=/dev/null/p.csv: cannot be written"),
    ],
)
def test_commands_that_cannot_work(
    arguments: list[str], rule: str, run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["predict", *(argument.replace("RUN", str(run_dir)) for argument in arguments)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"llcg: error: {rule}")
    assert error.count("\n") == 1


def test_a_disk_that_is_full_half_way_leaves_the_old_predictions(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "p.csv"
    out.write_text("old")

    def half(table: pd.DataFrame, path: Path, **_: object) -> None:
        path.write_text("node,class,prob")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", half)
    with pytest.raises(UserError, match=f"^out={out}: cannot be written .*No space left"):
        predictions(run_dir, f"out={out}")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("p.csv", "old")]


def test_models_that_are_not_the_runs(run_dir: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run_dir, copy)
    (copy / "best.pt").unlink()
    with pytest.raises(UserError, match=f"^{copy}/best.pt: no such file; use which=final"):
        predictions(copy)
    shutil.copy(run_dir / "config.yaml", copy / "best.pt")
    with pytest.raises(UserError, match=f"^{copy}/best.pt: not a state_dict"):
        predictions(copy)
    torch.save({"weight": torch.zeros(3)}, copy / "best.pt")
    with pytest.raises(UserError, match=f"^{copy}/best.pt: not a state_dict of the model in config.yaml"):
        predictions(copy)
    torch.save(Path("x"), copy / "best.pt")  # any object at all: it must not be unpickled
    with pytest.raises(UserError, match=f"^{copy}/best.pt: not a state_dict"):
        predictions(copy)
    (copy / "config.yaml").write_text("dataset: {source: moon}\n")
    with pytest.raises(UserError, match=f"^{copy}/config.yaml: not the settings of a run"):
        predictions(copy)


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("name: files", "name: x/../../../stolen", "dataset.name=x/../../../stolen: must be made of letters"),
        ("  root: ", "  root: ${oc.env:HOME}", "recorded settings have values, and no interpolation"),
        ("hidden: 8", "hidden: -8", "model.hidden=-8: must be at least 1"),
        ("arch: null", "arch: XX", "model.arch=XX: must be made of"),
        ("num_rounds: 14", "num_rounds: 14\nshell: rm", "unknown key shell"),
    ],
)
def test_settings_that_no_job_could_have(
    home: Path, run_dir: Path, tmp_path: Path, key: str, value: str, rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are checked as those of a job are; nothing is looked up, and no store is written anywhere."""
    copy = tmp_path / "deep" / "er" / "run"
    shutil.copytree(run_dir, copy)
    text = (copy / "config.yaml").read_text().replace(str(home / "parts"), str(copy / "parts"))
    assert key in text
    changed = re.sub(f"{key}.*" if key.endswith(" ") else rf"{key}\b", lambda _: value, text, count=1)
    (copy / "config.yaml").write_text(changed)
    before = sorted(tmp_path.rglob("*"))
    assert run(["predict", f"run_dir={copy}"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"llcg: error: {copy}/config.yaml: ")
    assert rule in error
    assert error.count("\n") == 1
    with pytest.raises(UserError, match=re.escape(rule)):
        load(copy)
    assert sorted(tmp_path.rglob("*")) == before


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["predict", "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: llcg predict run_dir=RUN")
    assert "which=best" in text
    assert run(["--help"]) == 0
    assert "llcg predict" in capsys.readouterr().out
