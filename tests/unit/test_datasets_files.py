"""The user's own graph: every format gives the same graph, and every mistake is named with its place."""

import contextlib
import gzip
import os
import pickle
import subprocess
import sys
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
from llcg_dist.config import load_config
from llcg_dist.data.datasets import load_dataset
from llcg_dist.data.graph import TEST, TRAIN, UNUSED, VAL, Graph
from llcg_dist.data.partition import ensure_store
from llcg_dist.data.store import read_shard
from llcg_dist.dataset_config import FilesConfig
from llcg_dist.errors import UserError

EDGES = "src,dst\na,b\nb,c\nc,d\nd,e\ne,f\nb,a\nc,c\n"
FEATURES = "node,x,y\na,1,0.5\nb,2,0.25\nc,3,-1\nd,4,1e3\ne,5,0\nf,6,7\n"
LABELS = "node,label\nf,tea\ne,tea\nd,\nc,milk\nb,milk\na,tea\n"
SPLIT = "node,split\na,train\nb,train\nc,val\nd,\ne,test\nf,test\n"
TEXTS = {"edges": EDGES, "features": FEATURES, "labels": LABELS, "split": SPLIT}


def write(folder: Path, **texts: str) -> None:
    for name, text in (TEXTS | texts).items():
        (folder / f"{name}.csv").write_text(text)


def settings(folder: Path, **other: Any) -> list[str]:
    given = {name: folder / f"{name}.csv" for name in TEXTS} | other
    overrides = [f"dataset.{name}={value}" for name, value in given.items()]
    return ["dataset=files", f"partition.root={folder / 'parts'}", "cluster.num_machines=1", *overrides]


def loaded(folder: Path, suffix: str = ".csv", **other: Any) -> Graph:
    files = {name: str(folder / f"{name}{suffix}") for name in TEXTS}
    return load_dataset(FilesConfig(**(files | other)))


def as_dict(graph: Graph) -> dict[str, Any]:
    """What is known of each node, by the user's own names."""
    nodes = graph.names.get("node", np.arange(graph.num_nodes))
    classes = graph.names["class"]
    rows = zip(graph.indptr[:-1], graph.indptr[1:], strict=True)
    known: dict[str, Any] = {}
    for node, (a, b) in enumerate(rows):
        label = graph.labels[node]
        shown = "" if graph.split[node] == UNUSED else str(classes[label])
        neighbours = sorted(str(nodes[other]) for other in graph.indices[a:b])
        known[str(nodes[node])] = (neighbours, graph.features[node].tolist(), shown, int(graph.split[node]))
    return known


EXPECTED = {
    "a": (["b"], [1, 0.5], "tea", TRAIN),
    "b": (["a", "c"], [2, 0.25], "milk", TRAIN),
    "c": (["b", "d"], [3, -1], "milk", VAL),
    "d": (["c", "e"], [4, 1000], "", UNUSED),
    "e": (["d", "f"], [5, 0], "tea", TEST),
    "f": (["e"], [6, 7], "tea", TEST),
}


def test_csv(tmp_path: Path) -> None:
    write(tmp_path)
    graph = loaded(tmp_path)
    assert as_dict(graph) == EXPECTED
    assert graph.names["class"].tolist() == ["milk", "tea"]
    assert graph.names["feature"].tolist() == ["x", "y"]
    assert (graph.task, graph.metric) == ("multiclass", "accuracy")


def test_packed_csv(tmp_path: Path) -> None:
    for name, text in TEXTS.items():
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert as_dict(loaded(tmp_path, ".csv.gz")) == EXPECTED


def test_parquet(tmp_path: Path) -> None:
    write(tmp_path)
    for name in TEXTS:
        pd.read_csv(tmp_path / f"{name}.csv").to_parquet(tmp_path / f"{name}.parquet")
    assert as_dict(loaded(tmp_path, ".parquet")) == EXPECTED


def test_parquet_as_pandas_users_write_it(tmp_path: Path) -> None:
    """With ids as the index, an index of no meaning, classes as categories, numbers as whatever they were."""
    write(tmp_path)
    tables = {name: pd.read_csv(tmp_path / f"{name}.csv") for name in TEXTS}
    tables["features"] = tables["features"].astype({"x": np.int8}).set_index("node")
    tables["edges"] = tables["edges"].sort_values("dst")
    tables["labels"] = tables["labels"].astype({"label": "category", "node": "category"})
    for name, table in tables.items():
        table.to_parquet(tmp_path / f"{name}.parquet")
    graph = loaded(tmp_path, ".parquet")
    assert as_dict(graph) == EXPECTED
    assert graph.names["feature"].tolist() == ["x", "y"]


def renamed(text: str, names: dict[str, str]) -> str:
    """The same file with other node ids."""
    return "\n".join(",".join(names.get(cell, cell) for cell in line.split(",")) for line in text.splitlines())


def expected(names: dict[str, str]) -> dict[str, Any]:
    return {names[node]: (sorted(names[n] for n in known[0]), *known[1:]) for node, known in EXPECTED.items()}


NUMBERS = {name: str(i) for i, name in enumerate("abcdef")}


def test_npy(tmp_path: Path) -> None:
    write(tmp_path, labels=renamed(LABELS, NUMBERS), split=renamed(SPLIT, NUMBERS))
    np.save(tmp_path / "edges.npy", np.array([[0, 1, 2, 3, 4, 1, 2], [1, 2, 3, 4, 5, 0, 2]]))
    table = pd.read_csv(tmp_path / "features.csv")[["x", "y"]].to_numpy()
    for dtype in (np.float64, np.float32, np.float16):
        np.save(tmp_path / "features.npy", table.astype(dtype))
        graph = loaded(tmp_path, edges=tmp_path / "edges.npy", features=tmp_path / "features.npy")
        assert as_dict(graph) == expected(NUMBERS)
        assert isinstance(graph.features, np.memmap) == (dtype != np.float64)
        assert graph.features.dtype == (np.float32 if dtype == np.float64 else dtype)
        assert "node" not in graph.names


def test_whole_numbers_as_ids_need_not_be_in_order(tmp_path: Path) -> None:
    names = dict(zip("abcdef", ["40", "7", "0", "1000000007", "3", "12"], strict=True))
    write(tmp_path, **{name: renamed(text, names) for name, text in TEXTS.items()})
    graph = loaded(tmp_path)
    assert graph.names["node"].tolist() == [40, 7, 0, 1000000007, 3, 12]
    assert as_dict(graph) == expected(names)


def test_ids_stay_as_they_are_written(tmp_path: Path) -> None:
    """007 and 7 are two nodes; NA and nan are words."""
    names = dict(zip("abcdef", ["007", "7", "NA", "nan", "null", "x y"], strict=True))
    write(tmp_path, **{name: renamed(text, names) for name, text in TEXTS.items()})
    graph = loaded(tmp_path)
    assert graph.names["node"].tolist() == list(names.values())
    assert as_dict(graph) == expected(names)


def test_class_names_that_look_like_missing_values(tmp_path: Path) -> None:
    write(tmp_path, labels=LABELS.replace("tea", "NA").replace("milk", "None"))
    assert loaded(tmp_path).names["class"].tolist() == ["NA", "None"]


@pytest.mark.parametrize("first", [0, 1])
def test_numbered_classes(first: int, tmp_path: Path) -> None:
    write(tmp_path, labels=LABELS.replace("tea", str(first)).replace("milk", str(first + 1)))
    graph = loaded(tmp_path)
    assert graph.names["class"].tolist() == [first, first + 1]
    assert graph.labels.tolist() == [0, 1, 1, -1, 0, 0]


def test_several_labels_a_node(tmp_path: Path) -> None:
    labels = "node,hot,sweet,old\na,1,0,0\nb,0,0,0\nc,1,1,0\nd,,,\ne,0,1,1\nf,1,1,1\n"
    write(tmp_path, labels=labels)
    graph = loaded(tmp_path)
    assert (graph.task, graph.metric, graph.num_classes) == ("multilabel", "f1_micro", 3)
    assert graph.names["class"].tolist() == ["hot", "sweet", "old"]
    assert graph.labels.tolist() == [[1, 0, 0], [0, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 1], [1, 1, 1]]
    assert graph.split[3] == UNUSED
    assert loaded(tmp_path, metric="roc_auc").metric == "roc_auc"


def test_without_a_split_labelled_nodes_are_drawn(tmp_path: Path) -> None:
    write(tmp_path)
    splits = [loaded(tmp_path, split=None, seed=seed).split for seed in (0, 0, 1, 2, 3)]
    assert [np.count_nonzero(splits[0] == split) for split in (TRAIN, VAL, TEST)] == [3, 1, 1]
    assert splits[0][3] == UNUSED  # d has no label
    assert (splits[0] == splits[1]).all()
    assert any((splits[0] != other).any() for other in splits[2:])


@given(st.permutations("abcdef"), st.permutations("abcdef"), st.permutations(range(7)))
def test_the_order_of_rows_means_nothing(nodes: list[str], labels: list[str], edges: list[int]) -> None:
    def by(text: str, order: list[str]) -> str:
        header, *lines = text.splitlines()
        return "\n".join([header, *sorted(lines, key=lambda line: order.index(line[0]))])

    header, *lines = EDGES.splitlines()
    shuffled = "\n".join([header, *(lines[i] for i in edges)])
    with tempfile.TemporaryDirectory() as folder:
        mixed = {"features": by(FEATURES, nodes), "labels": by(LABELS, labels), "split": by(SPLIT, labels)}
        write(Path(folder), edges=shuffled, **mixed)
        assert as_dict(loaded(Path(folder))) == EXPECTED


def test_the_store_keeps_the_names_for_the_server_only(tmp_path: Path) -> None:
    write(tmp_path)
    store, manifest = ensure_store(load_config(settings(tmp_path, name="drinks")))
    assert store.name.startswith("files_drinks_")
    whole = read_shard(store / "global").graph
    assert as_dict(whole) == EXPECTED
    assert np.load(store / "global" / "node_names.npy", allow_pickle=False).tolist() == list("abcdef")
    assert np.load(store / "global" / "class_names.npy", allow_pickle=False).tolist() == ["milk", "tea"]
    assert not list((store / "part0").glob("*names*"))
    assert set(manifest["content"]) == {"edges", "features", "labels", "split"}


def test_a_file_that_changes_under_its_name_is_noticed(tmp_path: Path) -> None:
    write(tmp_path)
    config = load_config(settings(tmp_path))
    store, before = ensure_store(config)
    os.utime(tmp_path / "labels.csv")
    assert ensure_store(config)[1] == before  # touched, not changed
    (tmp_path / "labels.csv").write_text(LABELS.replace("d,\n", "d,tea\n"))
    with pytest.raises(UserError, match=f"^dataset.labels={tmp_path}/labels.csv: has changed since {store} was built"):
        ensure_store(config)
    ensure_store(load_config(settings(tmp_path, name="another")))
    (tmp_path / "labels.csv").write_text(LABELS)
    (tmp_path / "edges.csv").unlink()
    assert ensure_store(config)[1] == before  # the store is all that a run needs


def test_parts_of_changed_files_do_not_mix(tmp_path: Path) -> None:
    """The machines' parts are matched by store_id: an old copy on one host must not be taken for the new."""
    ids = []
    for labels in (LABELS, LABELS.replace("d,\n", "d,tea\n")):
        write(tmp_path, labels=labels)
        config = load_config([*settings(tmp_path), f"partition.root={tmp_path / str(len(ids))}"])
        ids.append(read_shard(ensure_store(config)[0] / "part0").store_id)
    assert ids[0] != ids[1]


def changed(name: str, old: str, new: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        assert old in TEXTS[name]
        (folder / f"{name}.csv").write_text(TEXTS[name].replace(old, new))

    return apply


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
    "fewer labels than nodes": ("labels", "e,tea\n", "", "5 rows for the 6 nodes of {folder}/features.csv"),
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
    "nothing": ("edges", EDGES, "", "not a readable CSV file"),
    "an index": ("features", "node,x,y\na,", "node,,y\na,", "column 2 has no name (written with pandas?"),
}


@pytest.mark.parametrize("kind", BAD_TEXT)
def test_bad_text_is_named_with_its_line_and_column(kind: str, tmp_path: Path) -> None:
    name, old, new, rule = BAD_TEXT[kind]
    write(tmp_path)
    changed(name, old, new)(tmp_path)
    assert refused(tmp_path).startswith(f"{tmp_path}/{name}.csv: {rule.format(folder=tmp_path)}")


def refused(folder: Path, **other: Any) -> str:
    with pytest.raises(UserError) as error:
        loaded(folder, **other)
    assert "\n" not in str(error.value).strip()
    return str(error.value)


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


BAD_NPY: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "nan": ("features", lambda p: np.save(p, spoiled(np.nan)), "row 2, column 1 is nan; it must be a finite number"),
    "infinite": ("features", lambda p: np.save(p, spoiled(np.inf)), "row 2, column 1 is inf; it must be a finite"),
    "flat": ("features", lambda p: np.save(p, np.zeros(6)), "must have shape [nodes, features], not [6]"),
    "words": ("features", lambda p: np.save(p, np.full((6, 2), "a")), "must hold an array of numbers, not <U1"),
    "fewer rows": ("features", lambda p: np.save(p, np.zeros((5, 2))), ""),
    "pickled": (
        "features",
        lambda p: np.save(p, np.full((6, 2), None), allow_pickle=True),
        "not a readable .npy file: it holds pickled Python objects, which are never loaded",
    ),
    "a pickle": (
        "features",
        lambda p: p.write_bytes(pickle.dumps({"x": 1})),
        "not a readable .npy file: it holds pickled Python objects, which are never loaded",
    ),
    "truncated": ("features", lambda p: truncated(p, np.zeros((6, 2))), "not a readable .npy file: it is truncated"),
    "empty": ("features", lambda p: p.write_bytes(b""), "not a readable .npy file: it is truncated"),
    "cut header": ("features", lambda p: truncated(p, np.zeros((6, 2)), 20), "not a readable .npy file"),
    "an archive": ("features", lambda p: archive(p), "must hold an array of numbers, not an .npz archive"),
    "wrong shape": (
        "edges",
        lambda p: np.save(p, np.zeros((5, 2), int)),
        "must hold whole numbers in the shape",
    ),
    "floats": ("edges", lambda p: np.save(p, np.zeros((2, 5))), "must hold whole numbers in the shape"),
    "beyond": ("edges", lambda p: np.save(p, [[0, 1], [1, 6]]), "column 1: node '6' is not a node of"),
    "below": ("edges", lambda p: np.save(p, [[0, -1], [1, 2]]), "column 1: node '-1' is not a node of"),
}


def spoiled(value: float) -> Any:
    features = np.ones((6, 2), np.float32)
    features[2, 1] = value
    return features


def truncated(path: Path, array: Any, keep: int = -8) -> None:
    np.save(path, array)
    path.write_bytes(path.read_bytes()[:keep])


def archive(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, np.zeros((6, 2)))


@pytest.mark.parametrize("kind", BAD_NPY)
def test_bad_npy_is_named_with_its_row_and_column(kind: str, tmp_path: Path) -> None:
    name, spoil, rule = BAD_NPY[kind]
    write(tmp_path, labels=renamed(LABELS, NUMBERS), split=renamed(SPLIT, NUMBERS), edges=renamed(EDGES, NUMBERS))
    np.save(tmp_path / "features.npy", np.ones((6, 2)))
    np.save(tmp_path / "edges.npy", [[0], [1]])
    spoil(tmp_path / f"{name}.npy")
    message = refused(tmp_path, edges=tmp_path / "edges.npy", features=tmp_path / "features.npy")
    if kind == "fewer rows":
        rule = f"line 2: node '5' is not a node of {tmp_path}/features.npy"
        assert message == f"{tmp_path}/labels.csv: {rule}"
    else:
        assert message.startswith(f"{tmp_path}/{name}.npy: {rule}")


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
        ({"edges": "README.md"}, "README.md: unknown kind of file; must end in .csv, .csv.gz or .parquet"),
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


def test_the_real_command_ends_with_code_2(tmp_path: Path) -> None:
    write(tmp_path, edges=EDGES.replace("d,e", "d,z"))
    command = [sys.executable, "-m", "llcg_dist.cli.main", "train", *settings(tmp_path)]
    ended = subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 2
    place = f"{tmp_path}/edges.csv: line 5: dst 'z' is not a node of {tmp_path}/features.csv"
    assert ended.stderr == f"llcg: error: {place}\n"
