"""Parts that a file says, and random ones."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.config.files import ColumnsConfig, FilesConfig
from llcg_dist.config.partition import PartitionConfig, PartitionMethod
from llcg_dist.data.cut import label_skew
from llcg_dist.data.datasets import load_dataset
from llcg_dist.data.parts import assign_parts, read_parts
from llcg_dist.errors import UserError
from tests.helpers.graphs import graph_of

GRAPH = graph_of([(0, 1), (1, 2), (2, 3)], 4)


@pytest.mark.parametrize("seed", [0, 3])
def test_random_parts_know_nothing_of_how_a_generated_graph_drew_its_classes(seed: int) -> None:
    graph = load_dataset(load_config(["dataset.nodes=4000", f"dataset.seed={seed}"]).dataset)
    parts = assign_parts(graph, 4, PartitionConfig(PartitionMethod.random, seed))
    counts = [np.bincount(graph.labels[parts == part], minlength=16).tolist() for part in range(4)]
    assert max(label_skew(count, graph.label_counts().tolist()) for count in counts) < 0.15


def test_a_table_names_nodes_in_any_order(tmp_path: Path) -> None:
    named = replace(GRAPH, names={"node": np.array(["a", "b", "c", "007"])})
    table = tmp_path / "parts.csv"
    table.write_text("node,part\nb,1\na,0\n007,2\nc,1\n")
    assert read_parts(table, named, 3, FilesConfig()).tolist() == [0, 1, 1, 2]
    table.write_text("node,part\n3,1\n1,0\n2,0\n0,1\n")
    assert read_parts(table, GRAPH, 2, FilesConfig()).tolist() == [1, 0, 0, 1]


def test_a_table_may_be_written_like_the_others_of_the_graph(tmp_path: Path) -> None:
    table = tmp_path / "parts.csv"
    table.write_text("id;owner\n3;1\n1;0\n2;0\n0;1\n")
    tables = FilesConfig(delimiter=";", columns=ColumnsConfig(node="id", part="owner"))
    assert read_parts(table, GRAPH, 2, tables).tolist() == [1, 0, 0, 1]


def test_an_array(tmp_path: Path) -> None:
    np.save(tmp_path / "parts.npy", np.array([1, 0, 0, 1]))
    assert read_parts(tmp_path / "parts.npy", GRAPH, 2, FilesConfig()).tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node,part\n0,0\n1,0\n2,0\n3,2\n", "node 3 is in part 2: must be one of 0 to 1"),
        ("node,part\n0,0\n1,0\n2,0\n", "3 rows for the 4 nodes"),
        ("node,part\n0,0\n1,0\n2,0\n3,x\n", "column 'part' must hold whole numbers"),
        ("node,part\n0,0\n1,0\n2,0\n3,\n", "column 'part' is empty"),
        ("node,owner\n0,0\n", "no column 'part'"),
        ("node,part\n0,0\n1,0\n2,0\n9,0\n", "'9' is not a node of the graph"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    table = tmp_path / "parts.csv"
    table.write_text(text)
    with pytest.raises(UserError) as refused:
        read_parts(table, GRAPH, 2, FilesConfig())
    assert message in str(refused.value)


def test_an_array_of_another_length(tmp_path: Path) -> None:
    np.save(tmp_path / "parts.npy", np.array([0, 1]))
    with pytest.raises(UserError, match=r"a whole number for each of the 4 nodes, not int64\[2\]"):
        read_parts(tmp_path / "parts.npy", GRAPH, 2, FilesConfig())
