"""The user's own graph: every mistake is named with its place."""

import contextlib
import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.cli.main import run
from llcg_dist.config.compose import load_config
from llcg_dist.data.partition import ensure_store
from llcg_dist.errors import UserError
from tests.helpers.own_graph import (
    EDGES,
    FEATURES,
    LABELS,
    NUMBERS,
    SPLIT,
    TEXTS,
    loaded,
    refused,
    renamed,
    settings,
    write,
)


def changed(name: str, old: str, new: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        assert old in TEXTS[name]
        (folder / f"{name}.csv").write_text(TEXTS[name].replace(old, new))

    return apply


NUMBERED_AND_MORE = "node,label\n0,b,tea\n1,c,milk\n2,e,tea\n"
"""pandas takes 0, 1, 2 for the index of a table of b, c and e."""
BAD_TEXT = {
    "nan": ("features", "2,0.25", "2,nan", "line 3: column 'y' is 'nan'; it must be a finite number"),
    "infinite": ("features", "-1", "-inf", "line 4: column 'y' is -inf; it must be a finite number"),
    "too large for float32": ("features", "1e3", "1e39", "line 5: column 'y' is 1e+39; it must be a finite number"),
    "empty feature": ("features", "e,5,", "e,,", "line 6: column 'x' is empty; it must be a finite number"),
    "a word": ("features", "f,6", "f,six", "line 7: column 'x' is 'six'; it must be a finite number"),
    "no features": ("features", FEATURES, "node\na\n", "has no column besides node"),
    "no nodes": ("features", FEATURES, "node,x\n", "has no row"),
    "node twice": ("features", "b,2", "a,2", "line 3: node 'a' stands in line 2 already; a node must have one row"),
    "empty id": ("features", "b,2", ",2", "line 3: column 'node' is empty"),
    "unknown source": ("edges", "d,e", "z,e", "line 5: src 'z' is not a node of {folder}/features.csv"),
    "unknown target": ("edges", "d,e", "d,z", "line 5: dst 'z' is not a node of {folder}/features.csv"),
    "half an edge": ("edges", "d,e", "d,", "line 5: column 'dst' is empty"),
    "no column": ("edges", "src,dst", "from,to", "no column 'src'; it has 'from', 'to'"),
    "a column twice": ("edges", "src,dst", "src,src", "two columns are named 'src'"),
    "label of an unknown node": ("labels", "e,tea", "z,tea", "line 3: node 'z' is not a node of {folder}/features.csv"),
    "no labels": ("labels", LABELS, "node,label\n", "has no row; some nodes need labels"),
    "label twice": ("labels", "e,tea", "f,milk", "line 3: node 'f' stands in line 2 already"),
    "no label column": ("labels", "node,label", "node,class", "no column 'label'; it has 'node', 'class'"),
    "no node column": ("labels", "node,label", "id,label", "no column 'node'; it has 'id', 'label'"),
    "a measurement": (
        "labels",
        "e,tea",
        "e,0.5",
        "line 3: column 'label' is 0.5, out of range: a class is a name or a",
    ),
    "one class": ("labels", "milk", "tea", "column 'label' has 1 class"),
    "split of an unknown node": ("split", "b,train", "z,train", "line 3: node 'z' is not a node of"),
    "unknown split": (
        "split",
        "c,val",
        "c,valid",
        "line 4: column 'split' is 'valid'; must be one of train, val, test",
    ),
    "overlap": (
        "split",
        "f,test",
        "a,val",
        "line 7: node 'a' stands in line 2 already; in train and in val: splits must",
    ),
    "unlabelled": ("split", "d,", "d,val", "line 5: in val, but {folder}/labels.csv has no label for this node"),
    "nobody trains": ("split", "train", "val", "the training set is empty; at least one node must be in train"),
    "fewer splits than nodes": ("split", "f,test\n", "", "5 rows for the 6 nodes of {folder}/features.csv"),
    "ragged": ("edges", "b,c", "b,c,e,f", "not a readable CSV file"),
    "more cells than columns": ("edges", "src,dst\n", "src\n", "no column 'dst'"),
    "more cells everywhere": ("features", "node,x,y\n", "node,x\n", "not a readable CSV file (line 2 has more cells"),
    "a cell more in the labels": (
        "labels",
        LABELS,
        NUMBERED_AND_MORE,
        "not a readable CSV file (line 2 has more cells",
    ),
    "nothing": ("edges", EDGES, "", "not a readable CSV file"),
    "an index": ("features", "node,x,y\na,", "node,,y\na,", "column 2 has no name (written with pandas?"),
    "an index read and written": (
        "features",
        ",x,",
        ",Unnamed: 0,",
        "column 'Unnamed: 0' is an index that has no name",
    ),
}


@pytest.mark.parametrize("kind", BAD_TEXT)
def test_bad_text_is_named_with_its_line_and_column(kind: str, tmp_path: Path) -> None:
    name, old, new, rule = BAD_TEXT[kind]
    write(tmp_path)
    changed(name, old, new)(tmp_path)
    assert refused(tmp_path).startswith(f"{tmp_path}/{name}.csv: {rule.format(folder=tmp_path)}")


@pytest.mark.parametrize(
    ("stray", "rule"),
    [
        ("-1", "line 3: column 'label' is -1, out of range: 3 numbered classes must be 0..2 without a gap"),
        ("999", "line 3: column 'label' is 999, out of range: 3 numbered classes must be 0..2 without a gap"),
        ("3", "line 3: column 'label' is 3, out of range: 3 numbered classes must be 0..2 without a gap"),
    ],
)
def test_numbered_classes_out_of_range(stray: str, rule: str, tmp_path: Path) -> None:
    labels = LABELS.replace("e,tea", f"e,{stray}").replace("tea", "0").replace("milk", "1")
    write(tmp_path, labels=labels)
    assert refused(tmp_path).startswith(f"{tmp_path}/labels.csv: {rule}")


@pytest.mark.parametrize(("cell", "shown"), [("2", "2"), ("-1", "-1"), ("yes", "'yes'"), ("", "empty")])
def test_several_labels_are_0_or_1(cell: str, shown: str, tmp_path: Path) -> None:
    labels = f"node,hot,sweet\na,1,0\nb,0,{cell}\nc,1,1\nd,,\ne,0,1\nf,1,1\n"
    write(tmp_path, labels=labels)
    message = refused(tmp_path)
    assert message.startswith(f"{tmp_path}/labels.csv: line 3: column 'sweet' is {shown}")
    assert "must be 0 or 1" in message


def test_a_label_column_stands_alone(tmp_path: Path) -> None:
    write(tmp_path, labels="node,label,since\na,x,1\n")
    assert refused(tmp_path).startswith(f"{tmp_path}/labels.csv: column 'since' beside 'label'")


@given(st.sampled_from(["features.npy", "features.parquet", "labels.csv", "edges.csv.gz"]), st.data())
def test_any_damage_is_found_or_harmless(file: str, data: st.DataObject) -> None:
    """Bytes lost or changed anywhere: the files load, or the user is told; nothing else is ever raised."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder, **{name: renamed(TEXTS[name], NUMBERS) for name in TEXTS})
        np.save(folder / "features.npy", np.ones((6, 2), np.float32))
        pd.read_csv(folder / "features.csv").to_parquet(folder / "features.parquet")
        (folder / "edges.csv.gz").write_bytes(gzip.compress((folder / "edges.csv").read_bytes()))
        content = bytearray((folder / file).read_bytes())
        position = st.integers(0, len(content) - 1)
        for place_of_byte in data.draw(st.lists(position, max_size=3)):
            content[place_of_byte] = data.draw(st.integers(0, 255))
        (folder / file).write_bytes(content[: data.draw(st.one_of(st.just(len(content)), position))])
        with contextlib.suppress(UserError):
            loaded(folder, **{file.split(".")[0]: str(folder / file)})


def test_bad_parquet(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / "features.parquet"
    table = pd.read_csv(tmp_path / "features.csv")
    table.to_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    assert refused(tmp_path, features=path).startswith(f"{path}: not a readable Parquet file")
    path.write_text(FEATURES)
    assert refused(tmp_path, features=path).startswith(f"{path}: not a readable Parquet file")
    table.rename(columns={"node": "id"}).to_parquet(path)
    assert refused(tmp_path, features=path).startswith(f"{path}: no column 'node'; it has 'id', 'x', 'y'")
    table["y"] = table["y"].where(table["node"] != "c")
    table.to_parquet(path)
    assert refused(tmp_path, features=path).startswith(f"{path}: row 2: column 'y' is empty")


@pytest.mark.parametrize(
    ("other", "rule"),
    [
        ({"edges": None}, "dataset.edges: must name a file"),
        ({"features": None}, "dataset.features: must name a file"),
        ({"labels": None}, "dataset.labels: must name a file"),
        ({"edges": "nowhere.csv"}, "nowhere.csv: no such file"),
        ({"edges": "README.md"}, "README.md: unknown kind of file; must end in .csv, .tsv, .txt, .csv.gz,"),
        (
            {"split": None, "train_fraction": 0.01},
            "dataset.train_fraction=0.01 of 5 labelled nodes: the training set is",
        ),
        ({"metric": "accuracy_"}, "dataset=files: metric 'accuracy_' is not one of"),
    ],
)
def test_settings_that_cannot_work(
    other: dict[str, Any], rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    (tmp_path / "README.md").touch()
    monkeypatch.chdir(tmp_path)
    assert refused(tmp_path, **other).startswith(rule)


def test_a_name_that_would_leave_the_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^dataset.name=\.\./up: must be made of letters"):
        ensure_store(load_config(settings(tmp_path, name="../up")))


def test_the_command_ends_with_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, split=SPLIT.replace("f,test", "a,val"))
    assert run(["train", *settings(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(
        f"llcg: error: {tmp_path}/split.csv: line 7: node 'a' stands in line 2 already; in train and"
    )
    assert error.count("\n") == 1
    assert not (tmp_path / "parts").exists() or not list((tmp_path / "parts").glob("files*"))


def test_the_command_says_one_line_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, edges=EDGES.replace("d,e", "d,z"))
    assert run(["train", *settings(tmp_path)]) == 2
    place = f"{tmp_path}/edges.csv: line 5: dst 'z' is not a node of {tmp_path}/features.csv"
    assert capsys.readouterr().err == f"llcg: error: {place}\n"
