"""The user's own graph: every format gives the same graph."""

import gzip
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from llcg_dist.config.compose import load_config
from llcg_dist.data.graph import TEST, TRAIN, UNUSED, VAL, Graph
from llcg_dist.data.partition import ensure_store
from llcg_dist.data.store import read_shard
from llcg_dist.errors import UserError
from tests.helpers.own_graph import EDGES, FEATURES, LABELS, NUMBERS, SPLIT, TEXTS, loaded, renamed, settings, write


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


def expected(names: dict[str, str]) -> dict[str, Any]:
    return {names[node]: (sorted(names[n] for n in known[0]), *known[1:]) for node, known in EXPECTED.items()}


def test_npy(tmp_path: Path) -> None:
    write(tmp_path, labels=renamed(LABELS, NUMBERS), split=renamed(SPLIT, NUMBERS))
    np.save(tmp_path / "edges.npy", np.array([[0, 1, 2, 3, 4, 1, 2], [1, 2, 3, 4, 5, 0, 2]]))
    table = pd.read_csv(tmp_path / "features.csv")[["x", "y"]].to_numpy()
    for dtype in (np.float64, np.float32, np.float16):
        np.save(tmp_path / "features.npy", table.astype(dtype))
        graph = loaded(tmp_path, edges=tmp_path / "edges.npy", features=tmp_path / "features.npy")
        assert as_dict(graph) == expected(NUMBERS)
        assert isinstance(graph.features, np.memmap)
        stays_where_it_is = Path(str(graph.features.filename)) == tmp_path / "features.npy"
        assert stays_where_it_is == (dtype != np.float64)
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


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        (
            "tea ",
            "labels.csv: column 'label': 'tea' and 'tea ' are two classes, and differ in spaces or capitals alone",
        ),
        ("Milk", "'Milk' and 'milk' are two classes"),
        ("NA", "'NA' is one of the classes; leave the cell empty"),
        ("coffee", ""),
    ],
)
def test_doubtful_names_of_classes_are_noticed(
    cell: str, says: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, labels=LABELS.replace("f,tea", f"f,{cell}"))
    assert cell in loaded(tmp_path).names["class"]
    assert says in caplog.text
    assert len(caplog.records) == bool(says)


@pytest.mark.parametrize("last", ["1,0,0", "1,0,1"])
def test_classes_in_columns_are_noticed(last: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, labels=f"node,tea,milk,old\na,1,0,0\nb,0,1,0\nc,0,1,0\nd,,,\ne,0,0,1\nf,{last}\n")
    assert loaded(tmp_path).task == "multilabel"
    assert ("every node has exactly one of 3 labels" in caplog.text) == (last == "1,0,0")


def test_without_a_split_labelled_nodes_are_drawn(tmp_path: Path) -> None:
    write(tmp_path)
    splits = [loaded(tmp_path, split=None, seed=seed).split for seed in (0, 0, 1, 2, 3)]
    assert [np.count_nonzero(splits[0] == split) for split in (TRAIN, VAL, TEST)] == [3, 1, 1]
    assert splits[0][3] == UNUSED  # d has no label
    assert (splits[0] == splits[1]).all()
    assert any((splits[0] != other).any() for other in splits[2:])


@hypothesis_settings(max_examples=25)
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
    ids: list[str] = []
    for labels in (LABELS, LABELS.replace("d,\n", "d,tea\n")):
        write(tmp_path, labels=labels)
        config = load_config([*settings(tmp_path), f"partition.root={tmp_path / str(len(ids))}"])
        ids.append(read_shard(ensure_store(config)[0] / "part0").store_id)
    assert ids[0] != ids[1]
