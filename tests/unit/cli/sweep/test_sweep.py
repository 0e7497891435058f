"""The folder of a sweep, and what it sweeps over."""

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from llcg_dist.cli.sweep.sweep import drop_overridden_params, sweep_name


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


def test_a_sweep_without_axes_of_its_own_is_left_alone() -> None:
    config = OmegaConf.create({"hydra": {"sweeper": {"params": None}}})
    drop_overridden_params(config, OverridesParser.create().parse_overrides(["seed=0,1"]))
    assert config.hydra.sweeper.params is None
