"""The parts: what their manifest says about the job."""

import pytest

from llcg_dist.config import load_config
from llcg_dist.doctor.findings import ERROR, OK, WARN
from llcg_dist.doctor.part_rules import check_parts
from tests.unit.doctor.facts import levels, manifest, only

LLCG = load_config(["cluster.num_machines=2"])
PSGD_PA = load_config(["cluster.num_machines=2", "algorithm=psgd_pa"])


def test_sound_parts() -> None:
    assert levels(check_parts(LLCG, manifest())) == {OK}


def test_another_number_of_parts_is_an_error() -> None:
    finding = only(check_parts(LLCG, manifest(num_parts=3)), ERROR)
    assert "cluster.num_machines=2" in finding.what
    assert "3 part(s)" in finding.what


def test_a_part_without_training_nodes_is_an_error() -> None:
    assert "part 0" in only(check_parts(LLCG, manifest(train_nodes=0)), ERROR).what


@pytest.mark.parametrize(
    ("model", "level"),
    [
        ("model=mlp", ERROR),
        ("model=skip_sage", ERROR),
        ("model=resgcn", ERROR),
        ("model=sage", WARN),
        ("model=appnp", WARN),
        ("model=gat", WARN),
    ],
)
def test_batchnorm_and_a_part_with_one_training_node(model: str, level: str) -> None:
    """Where neighbours come with the node, its batch has more than one row, unless it has none."""
    findings = check_parts(load_config(["cluster.num_machines=2", model]), manifest(train_nodes=1))
    assert [f.level for f in findings if "one training node" in f.what] == [level]
    findings = check_parts(load_config(["cluster.num_machines=2", model, "model.norm=none"]), manifest(train_nodes=1))
    assert not [f for f in findings if "one training node" in f.what]


@pytest.mark.parametrize("count", ["nodes", "edges", "train_nodes"])
def test_uneven_parts_are_a_warning(count: str) -> None:
    even = manifest()["parts"][0][count]
    assert levels(check_parts(LLCG, manifest(**{count: 2 * even}))) == {OK}  # 2 to 1 is 1.33 of the mean
    assert count.replace("_", " ") in only(check_parts(LLCG, manifest(**{count: 4 * even})), WARN).what


def test_skewed_labels_are_a_warning_where_nothing_corrects_for_them() -> None:
    skewed = manifest(label_counts=[0, 100]) | {"label_counts": [900, 100]}
    assert "part 0 are 90 %" in only(check_parts(PSGD_PA, skewed), WARN).what
    assert levels(check_parts(LLCG, skewed)) == {OK}
    without = load_config(["cluster.num_machines=2", "algorithm.S=0"])
    assert levels(check_parts(without, skewed)) == {OK, WARN}


def test_cut_edges_are_told() -> None:
    lines = [finding.line for finding in check_parts(LLCG, manifest() | {"partitioner": "random"})]
    assert any("50 of 1,050 edges are cut (4.8 %)" in line and "partition=metis" in line for line in lines)
