"""The probe measures every rate by the code of its stage, leaves nothing behind, and grows with no graph."""

import time
from dataclasses import asdict
from pathlib import Path

import pytest

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config
from llcg_dist.doctor import probe_files, probe_partition, probe_training
from llcg_dist.doctor.sizes import GraphSize

SMALL = GraphSize(2_000, 20_000, 16, 4)


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_files, "_PAUSE", 0.0)


def test_every_rate_is_measured_and_nothing_is_left(tmp_path: Path) -> None:
    found = probe_partition.measure_partition(SMALL, 3, tmp_path, start=1.5, with_metis=True)
    assert found.start == 1.5
    assert found.new_page in (0.0, 1.5e-9)  # on a host of one's own, and on a virtual one
    assert all(value > 0 for name, value in asdict(found).items() if name != "new_page"), found
    assert list(tmp_path.iterdir()) == []


def test_one_look_at_a_busy_moment_changes_nothing(tmp_path: Path) -> None:
    looks = iter([{"read": 1.0, "write": 9.0}, {"read": 7.0, "write": 2.0}, {"read": 2.0, "write": 1.0}])
    folders = []

    def look(folder: Path) -> dict[str, float]:
        folders.append(folder)
        (folder / "rows").touch(exist_ok=False)
        return next(looks)

    assert probe_files.middle_look(look, tmp_path) == {"read": 2.0, "write": 2.0}
    assert len(folders) == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "size", [GraphSize(1, 0, 1, 1), GraphSize(3, 1, 1, 2), GraphSize(100, 1, 2, 2), GraphSize(5, 10, 1, 2)]
)
def test_tiny_graphs_are_no_mistake(size: GraphSize, tmp_path: Path) -> None:
    probe_partition.measure_partition(size, 2, tmp_path, start=1.0)
    probe_training.measure_training(build_algorithm(load_config(["cluster.num_machines=2"])), size)


def test_a_graph_without_end_takes_seconds(tmp_path: Path) -> None:
    endless = GraphSize(10**9, 10**11, 4, 4)
    graph, rows = probe_partition.drawn_topology(10**6, endless.degree, 10**5)
    assert len(graph.indices) <= 10**5
    assert rows == len(graph.indptr) - 1
    began = time.process_time()
    probe_partition.measure_partition(endless, 8, tmp_path, start=1.0)
    assert time.process_time() - began < 60


@pytest.mark.parametrize("method", [["algorithm=llcg"], ["algorithm=psgd_pa"], ["algorithm=single"], ["model=gat"]])
def test_steps_and_evaluations_of_the_method(method: list[str]) -> None:
    algorithm = build_algorithm(load_config(["cluster.num_machines=2", *method]))
    found, costs = probe_training.measure_training(algorithm, SMALL)
    assert found.step > 0
    assert (found.server_step > 0) == algorithm.config.algorithm.corrects
    assert found.evaluate_node + found.evaluate_entry > 0
    assert costs.model_bytes() > 0
