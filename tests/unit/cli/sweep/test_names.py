"""Folders of a sweep and its jobs, and the layout of ranks on nodes: pure functions."""

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from llcg_dist.cli.launch.slurm import spread
from llcg_dist.cli.sweep.launcher import job_name
from llcg_dist.cli.sweep.sweep import sweep_name


@pytest.mark.parametrize(
    ("ranks", "nodes", "layout"), [(9, 2, [5, 4]), (4, 2, [2, 2]), (1, 3, [1]), (2, 3, [1, 1]), (5, 3, [2, 2, 1])]
)
def test_ranks_are_spread_evenly(ranks: int, nodes: int, layout: list[int]) -> None:
    assert spread(ranks, nodes) == layout


def name(*overrides: str) -> str:
    return sweep_name(OverridesParser.create().parse_overrides(list(overrides)))


def test_a_sweep_is_named_after_what_is_swept() -> None:
    assert name("experiment=tiny", "algorithm.K=1,4", "seed=0,1").startswith("K=1,4_seed=0,1_")
    assert name("experiment=tiny", "algorithm.K=1,4") != name("algorithm.K=1,4")
    assert name("algorithm.K=1,4") != name("algorithm.K=1,4,16")
    long = name("algorithm.rho=interval(0.5,1.5)", "seed=" + ",".join(map(str, range(200))))
    assert long.startswith("rho=interval-0.5,1.5-_seed=0,1,2")
    assert len(long) < 80


def test_a_sweep_keeps_its_name_wherever_it_runs() -> None:
    plain = name("algorithm.K=1,4", "seed=0")
    assert name("algorithm.K=1,4", "seed=0", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2") == plain
    hashes = {name(*order).rpartition("_")[2] for order in (("seed=0,1", "num_rounds=2"), ("num_rounds=2", "seed=0,1"))}
    assert len(hashes) == 1


def test_the_order_of_swept_keys_does_not_make_another_sweep() -> None:
    assert name("seed=0,1", "algorithm.K=1,4") == name("algorithm.K=1,4", "seed=0,1")


def test_a_job_is_named_after_its_values_within_one_folder() -> None:
    assert job_name(["algorithm.K=4", "seed=1"]) == job_name(["seed=1", "algorithm.K=4"]) == "algorithm.K=4,seed=1"
    assert job_name([]) == "job"
    strange = {job_name([f"dataset.root={value}"]) for value in ("../a", "/a", "..-a", "-a", "a/b", "x" * 500)}
    assert len(strange) == 6
    assert all("/" not in each and len(each) < 200 for each in strange)
