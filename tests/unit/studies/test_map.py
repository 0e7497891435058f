"""The grid of studies/map.py and its table, from runs made by hand."""

from pathlib import Path

import pytest
from studies.map_grid import LLCG, METHODS, ONE, ONE_LARGE, WORDNET, cell_of, places
from studies.map_tables import Place, markdown

from llcg_dist.config.compose import load_config
from tests.unit.studies.test_plus import run


def place(folder: Path) -> Place:
    """One machine comes to 97 % of 0.8 in its third round of 1.5 s with small batches, never with large ones; LLCG in
    its second round, of a second and 12.5 MB."""
    runs = {
        ONE: [run(folder / "one", 0.5, 0.7, 0.8, algorithm="single")],
        ONE_LARGE: [run(folder / "large", 0.1, 0.2, 0.3, algorithm="single")],
        LLCG: [run(folder / "slow", 0.1, 0.1), run(folder / "llcg", 0.5, 0.79, sent=12_500_000)],
    }
    return Place("1/64", "plain", 4, 512, runs, 100.0, 2048.0)


def test_the_best_rate_of_each_and_the_network(tmp_path: Path) -> None:
    found = place(tmp_path)
    assert found.target == pytest.approx(77.6)
    assert found.one_machine() == pytest.approx(4.5)
    assert found.seconds(LLCG, 100) == pytest.approx(2 * (1 + 1.0))
    assert found.times_sooner(LLCG, 10_000) == pytest.approx(4.5 / 2.02)
    assert found.times_sooner(ONE_LARGE, 100) == 0
    assert found.predicted == pytest.approx(5 / 2)
    assert (found.soonest(100), found.soonest(10)) == (LLCG, ONE)


def test_table(tmp_path: Path) -> None:
    found = place(tmp_path)
    assert "| 1/64 | plain | 4 | 77.6 | 100 / 2.05e+03 | 2.5 | 4.5 (512) | 1.1 / 2 / 2.2 | llcg |" in markdown([found])


def test_runs_of_one_machine_are_shared_and_all_compose() -> None:
    same = {cell_of(ONE, "1/64", "plain", machines, 512, 1e-2) for machines in (2, 8)}
    assert len(same) == 1
    assert cell_of(ONE_LARGE, "1/64", "plain", 8, 512, 1e-2).batch == 4096
    found = [cell_of(method, "1/64", "noisy", 4, 512, 1e-2) for method in METHODS]
    assert len({cell.folder(Path("out")) for cell in found}) == len(METHODS)
    for cell in found:
        config = load_config([*cell.settings(None, Path("out")), "cluster.backend=loopback"])
        assert config.train.local_lr == config.train.server_lr == 0.01
    assert places(["1/64", WORDNET], ["plain", "noisy"], [8, 2]) == [
        ("1/64", "plain", 8), (WORDNET, "plain", 8), ("1/64", "noisy", 8), ("1/64", "plain", 2)
    ]  # fmt: skip
