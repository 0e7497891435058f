"""The parts: what their manifest says about the job."""

import numpy as np
import pytest
import torch

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config
from llcg_dist.data.graph import TEST, TRAIN, VAL, Graph
from llcg_dist.doctor.findings import ERROR, OK, WARN
from llcg_dist.doctor.part_rules import check_parts, check_single_rows
from llcg_dist.models import build_model
from llcg_dist.sampling.neighbor import NeighborSampler
from tests.helpers.doctor_facts import levels, manifest, only
from tests.helpers.graphs import graph_of


def method(*overrides: str) -> Algorithm:
    return build_algorithm(load_config(["cluster.num_machines=2", *overrides]))


LLCG, PSGD_PA = method(), method("algorithm=psgd_pa")


def test_sound_parts() -> None:
    assert levels(check_parts(LLCG, manifest())) == {OK}


def test_another_number_of_parts_is_an_error() -> None:
    finding = only(check_parts(LLCG, manifest(num_parts=3)), ERROR)
    assert "cluster.num_machines=2" in finding.what
    assert "3 part(s)" in finding.what


def test_a_part_without_training_nodes_is_an_error() -> None:
    assert "part 0" in only(check_parts(LLCG, manifest(train_nodes=0)), ERROR).what


ONE_TRAINS = np.array([TRAIN, VAL, VAL, TEST], np.int8)
PATH = graph_of([(0, 1), (1, 2), (2, 3)], 4, split=ONE_TRAINS)
LONELY = graph_of([(1, 2), (2, 3)], 4, split=ONE_TRAINS)


@pytest.mark.parametrize(
    ("model", "graph", "works"),
    [
        ("model=mlp", PATH, False),
        ("model=skip_sage", PATH, False),
        ("model=resgcn", PATH, False),
        ("model=sage", PATH, True),
        ("model=sage", LONELY, False),
        ("model=appnp", PATH, True),
        ("model=appnp", LONELY, False),
        ("model=gat", PATH, True),
        ("model=gat", LONELY, False),
    ],
)
def test_one_training_node_is_an_error_exactly_where_batchnorm_gets_one_row(
    model: str, graph: Graph, works: bool
) -> None:
    """Where neighbours come with the node, its batch has more than one row."""
    config = load_config([model])
    batch = NeighborSampler(graph, [-1] * 2 if model != "model=mlp" else []).sample(graph.nodes_in(TRAIN), 0)
    network = build_model(config.model, graph.num_features, graph.num_classes)
    try:
        network(torch.from_numpy(graph.features)[batch.nodes.long()], batch.blocks)
        ran = True
    except ValueError:
        ran = False
    assert ran is works
    assert levels(check_single_rows(config, {"part 0": graph})) == (set() if works else {ERROR})
    unnormalised = load_config([model, "model.norm=none"])
    assert check_single_rows(unnormalised, {"part 0": graph}) == []


@pytest.mark.parametrize("count", ["nodes", "edges", "train_nodes"])
def test_uneven_parts_are_a_warning(count: str) -> None:
    even = manifest()["parts"][0][count]
    assert levels(check_parts(LLCG, manifest(**{count: 2 * even}))) == {OK}  # 2 to 1 is 1.33 of the mean
    assert count.replace("_", " ") in only(check_parts(LLCG, manifest(**{count: 4 * even})), WARN).what


def test_skewed_labels_are_a_warning_where_nothing_corrects_for_them() -> None:
    skewed = manifest(label_counts=[0, 100]) | {"label_counts": [900, 100]}
    assert "part 0 are 90 %" in only(check_parts(PSGD_PA, skewed), WARN).what
    assert levels(check_parts(LLCG, skewed)) == {OK}
    assert "partition.balance=labels" in "".join(finding.advice for finding in check_parts(LLCG, skewed))
    assert levels(check_parts(method("algorithm.S=0"), skewed)) == {OK, WARN}
    assert levels(check_parts(method("algorithm=ggs"), skewed)) == {OK}


def test_cut_edges_are_told() -> None:
    lines = [finding.line for finding in check_parts(LLCG, manifest() | {"partitioner": "random"})]
    assert any("50 of 1,050 edges are cut (4.8 %)" in line and "partition=metis" in line for line in lines)
