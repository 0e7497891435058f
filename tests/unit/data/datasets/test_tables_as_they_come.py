"""Tables as users have them: other delimiters, encodings and names of columns, arrays and masks; the same graph."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.config.files import ColumnsConfig
from llcg_dist.data.graph import TEST, TRAIN, UNUSED, VAL, Graph
from llcg_dist.data.partition import ensure_store, store_path
from llcg_dist.errors import UserError
from tests.helpers.own_graph import LABELS, SPLIT, TEXTS, loaded, refused, settings, write


def assert_same(graph: Graph, other: Graph) -> None:
    for name in ("indptr", "indices", "features", "labels", "split"):
        np.testing.assert_array_equal(getattr(graph, name), getattr(other, name))
    assert graph.names["class"].tolist() == other.names["class"].tolist()


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """What the files in the folder hold as they are usually written."""
    write(tmp_path)
    return loaded(tmp_path)


DELIMITERS = [
    ("semicolon", ";", ".csv"), ("tab", "\t", ".txt"), ("pipe", "|", ".csv"), (":", ":", ".csv"), (None, "\t", ".tsv"),
]  # fmt: skip


@pytest.mark.parametrize(("word", "character", "suffix"), DELIMITERS)
def test_delimiters(graph: Graph, tmp_path: Path, word: str | None, character: str, suffix: str) -> None:
    for name, text in TEXTS.items():
        (tmp_path / f"{name}{suffix}").write_text(text.replace(",", character))
    assert_same(loaded(tmp_path, suffix, delimiter=word), graph)


def test_blanks_separate_cells(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text(TEXTS["edges"].replace(",", "   "))
    for name in ("features", "labels", "split"):
        pd.read_csv(tmp_path / f"{name}.csv").to_parquet(tmp_path / f"{name}.parquet")
    assert_same(loaded(tmp_path, ".parquet", edges=str(tmp_path / "edges.txt"), delimiter="space"), graph)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_encodings(tmp_path: Path, encoding: str, suffix: str) -> None:
    for name, text in TEXTS.items():
        content = text.replace("milk", "café").encode(encoding)
        (tmp_path / f"{name}{suffix}").write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    given = {} if encoding == "utf-8-sig" else {"encoding": encoding}
    assert loaded(tmp_path, suffix, **given).names["class"].tolist() == ["café", "tea"]


def test_columns_by_other_names(graph: Graph, tmp_path: Path) -> None:
    names: dict[str, Any] = {"src": "source", "dst": "target", "node": "id", "label": "drink", "split": "set"}
    for name, text in TEXTS.items():
        header, _, rows = text.partition("\n")
        renamed = ",".join(names.get(column, column) for column in header.split(","))
        (tmp_path / f"{name}.csv").write_text(f"{renamed}\n{rows}")
    columns = ColumnsConfig(**names)
    assert_same(loaded(tmp_path, columns=columns), graph)
    (tmp_path / "edges.csv").write_text(TEXTS["edges"].replace("src,dst", "source,target").replace("d,e", "d,z"))
    assert refused(tmp_path, columns=columns).startswith(f"{tmp_path}/edges.csv: line 5: target 'z' is not a node of")


def test_labels_of_the_labelled_nodes_alone(graph: Graph, tmp_path: Path) -> None:
    """Nodes without a label need no row in the split either; with one they do: a file may have been cut off."""
    write(tmp_path, labels=LABELS.replace("d,\n", ""), split=SPLIT.replace("d,\n", ""))
    assert_same(loaded(tmp_path), graph)
    several = "node,hot,sweet\na,1,0\nb,0,1\nc,1,1\ne,0,1\nf,1,1\n"
    write(tmp_path, labels=several)
    assert loaded(tmp_path).labels.tolist() == [[1, 0], [0, 1], [1, 1], [0, 0], [0, 1], [1, 1]]
    write(tmp_path, split=SPLIT.replace("f,test\n", ""))
    assert "every labelled node needs a row" in refused(tmp_path)


LABEL_ARRAYS = [
    np.array([1, 0, 0, -1, 1, 1]),
    np.array([[1], [0], [0], [-1], [1], [1]], np.int8),
    np.array([1, 0, 0, np.nan, 1, 1], np.float32),
]


@pytest.mark.parametrize("array", LABEL_ARRAYS)
def test_npy_labels(graph: Graph, tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "labels.npy", array)
    found = loaded(tmp_path, labels=str(tmp_path / "labels.npy"))
    np.testing.assert_array_equal(found.labels, graph.labels)
    np.testing.assert_array_equal(found.split, graph.split)
    assert found.names["class"].tolist() == [0, 1]


def test_npy_labels_of_words_and_of_several_labels(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "labels.npy"
    np.save(path, np.array(["tea", "milk", "milk", "", "tea", "tea"]))
    assert_same(loaded(tmp_path, labels=str(path)), graph)
    several = np.array([[1, 0], [0, 1], [1, 1], [np.nan] * 2, [0, 1], [1, 1]])
    np.save(path, several)
    found = loaded(tmp_path, labels=str(path))
    assert (found.task, found.metric, found.num_classes) == ("multilabel", "f1_micro", 2)
    assert found.labels.tolist() == np.nan_to_num(several).tolist()


MASKS = {
    "train": [True, True, False, False, False, False],
    "val": [False, False, True, False, False, False],
    "test": [False, False, False, False, True, True],
}
SPLIT_ARRAYS = [
    np.array([0, 0, 1, -1, 2, 2]),
    np.array(["train", "train", "val", "", "test", "test"]),
    np.array(list(MASKS.values())).T,
    np.array(list(MASKS.values())).T.astype(np.int8),
]


@pytest.mark.parametrize("array", SPLIT_ARRAYS)
def test_npy_splits(graph: Graph, tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "split.npy", array)
    assert_same(loaded(tmp_path, split=str(tmp_path / "split.npy")), graph)


def masks(folder: Path, **arrays: Any) -> dict[str, Any]:
    for name, array in arrays.items():
        np.save(folder / f"{name}_mask.npy", array)
    return {f"{name}_mask": str(folder / f"{name}_mask.npy") for name in arrays} | {"split": None}


def test_masks(graph: Graph, tmp_path: Path) -> None:
    assert_same(loaded(tmp_path, **masks(tmp_path, **MASKS)), graph)
    assert loaded(tmp_path, **masks(tmp_path, train=MASKS["train"])).split.tolist() == [TRAIN, TRAIN, *[UNUSED] * 4]


def test_a_table_of_masks(graph: Graph, tmp_path: Path) -> None:
    write(tmp_path, split="node,train,val,test\na,1,0,0\nb,true,false,\nc,0,True,0\ne,,,1\nf,0,0,1\n")
    assert loaded(tmp_path).split.tolist() == [TRAIN, TRAIN, VAL, UNUSED, TEST, TEST]
    write(tmp_path, split="node,train,val,test\na,1,0,1\n")
    assert refused(tmp_path).endswith("split.csv: line 2: in train and in test: splits must not overlap")
    write(tmp_path, split="node,train,val,test\na,yes,0,1\n")
    assert "line 2: column 'train' is 'yes'; it must be true or false" in refused(tmp_path)


BAD_ARRAYS = [
    ("labels", np.zeros(5), "has the shape [5]; row i is of node i, so there must be 6"),
    ("labels", np.array([0, 1, 0, 5, 1, 1]), "row 3 is 5, out of range: 3 numbered classes must be 0..2"),
    ("labels", np.array([0, 1, 0.5, 0, 1, 1]), "row 2 is 0.5, out of range: a class is a whole number"),
    ("labels", np.full((6, 2), 2), "row 0, column 0 is 2, out of range: must be 0 or 1"),
    ("split", np.array([0, 0, 1, 7, 2, 2]), "row 3 is '7'; it must be 0, 1, 2 or -1"),
    ("split", np.array(["train", "x", "", "", "", ""]), "row 1 is 'x'; it must be train, val, test or empty"),
    ("split", np.ones((6, 3), bool), "row 0: in train and in val: splits must not overlap"),
    ("split", np.ones(6, bool), "holds bool[6]; a split is [N] of 0, 1, 2"),
    ("split", np.array([0, 0, 1, 0, 2, 2]), "row 3: in train, but"),
]


@pytest.mark.parametrize(("setting", "array", "rule"), BAD_ARRAYS)
def test_bad_arrays_are_named_with_their_row(graph: Graph, tmp_path: Path, setting: str, array: Any, rule: str) -> None:
    path = tmp_path / f"{setting}.npy"
    np.save(path, array)
    assert refused(tmp_path, **{setting: str(path)}).startswith(f"{path}: {rule}")


def test_bad_masks(graph: Graph, tmp_path: Path) -> None:
    given = masks(tmp_path, train=[True] * 6, val=[False] * 5 + [True])
    assert (
        refused(tmp_path, **given) == f"{tmp_path}/train_mask.npy: row 5: in train and in val: splits must not overlap"
    )
    given = masks(tmp_path, train=np.arange(6))
    assert refused(tmp_path, **given).startswith(f"{tmp_path}/train_mask.npy: must hold true or false")
    (tmp_path / "mask.csv").touch()
    assert "must be an .npy file" in refused(tmp_path, train_mask=str(tmp_path / "mask.csv"), split=None)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_weights_of_edges_are_not_dropped_silently(graph: Graph, tmp_path: Path, suffix: str) -> None:
    table = pd.read_csv(tmp_path / "edges.csv").assign(kind="friend", weight=0.5)
    path = tmp_path / f"weighted{suffix}"
    if suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path)
    message = refused(tmp_path, edges=str(path))
    assert message.startswith(f"{path}: column 'weight' holds numbers: edges have no weights here")
    assert message.endswith("dataset.columns.ignore=[weight]")
    assert_same(loaded(tmp_path, edges=str(path), columns=ColumnsConfig(ignore=["weight"])), graph)


def test_columns_to_ignore_in_any_table(graph: Graph, tmp_path: Path) -> None:
    labels = LABELS.replace("label", "label,since").replace("tea\n", "tea,1\n").replace("milk\n", "milk,2\n")
    write(tmp_path, labels=labels.replace("d,\n", "d,,\n"))
    assert "dataset.columns.ignore=[since]" in refused(tmp_path)
    assert_same(loaded(tmp_path, columns=ColumnsConfig(ignore=["since"])), graph)


BAD_SETTINGS = [
    ("dataset.delimiter=ab", "dataset.delimiter=ab: must be one character, or one of comma, semicolon"),
    ("dataset.encoding=latin-x", "dataset.encoding=latin-x: unknown; use a name such as"),
    ("dataset.encoding=hex", "dataset.encoding=hex: unknown"),
    ("dataset.columns.dst=src", "dataset.columns.dst=src: must be another column than dataset.columns.src"),
    ("dataset.columns.ignore=[src]", "dataset.columns.src=src: must not be in dataset.columns.ignore"),
    ("dataset.train_mask=m.npy", "dataset.train_mask=m.npy: has no effect beside dataset.split"),
    ("dataset.columns.source=x", "unknown key dataset.columns.source; did you mean "),
]


@pytest.mark.parametrize(("override", "rule"), BAD_SETTINGS)
def test_settings_that_cannot_work(override: str, rule: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        load_config([*settings(tmp_path), override])
    assert str(error.value).startswith(rule)


def test_how_a_file_is_read_is_part_of_the_parts_identity(graph: Graph, tmp_path: Path) -> None:
    changes = [
        "dataset.delimiter=tab",
        "dataset.encoding=latin-1",
        "dataset.columns.label=x",
        "dataset.columns.ignore=[w]",
    ]
    paths = {
        store_path(load_config([*settings(tmp_path), *change])) for change in ([], *([change] for change in changes))
    }
    assert len(paths) == 1 + len(changes)


def test_a_mask_that_changes_under_its_name_is_noticed(graph: Graph, tmp_path: Path) -> None:
    given = masks(tmp_path, **MASKS)
    overrides = [*settings(tmp_path, **{name: value for name, value in given.items() if value}), "dataset.split=null"]
    _, manifest = ensure_store(load_config(overrides))
    assert {"train_mask", "val_mask", "test_mask"} <= set(manifest["content"])
    np.save(tmp_path / "test_mask.npy", [False] * 6)
    with pytest.raises(UserError, match="dataset.test_mask=.*: has changed since"):
        ensure_store(load_config(overrides))
