"""The folder of a sweep, and what it sweeps over."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from llcg_dist.cli.sweep.job import JobOutcome
from llcg_dist.cli.sweep.sweep import (
    _run,
    _sweep,
    drop_overridden_params,
    replaced_by_axes,
    require_swept_once,
    sweep_name,
)
from llcg_dist.errors import UserError


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


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        (["seed=0,1", "seed=2,3"], "seed=0,1 and seed=2,3: seed can be given once; name all its values there"),
        (["seed=0,1", "seed=2"], "seed=0,1 and seed=2: seed can be given once"),
        (["algorithm=llcg", "algorithm=psgd_pa", "seed=0,1"], "only one of them can be chosen"),
        (["seed=range(0)"], "this sweep has no job"),
    ],
)
def test_jobs_that_would_be_left_out_without_a_word(
    overrides: list[str], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as error:
        _sweep(overrides)
    assert line in str(error.value)


def test_a_later_axis_takes_the_place_of_an_earlier_value() -> None:
    overrides = ["seed=1", "seed=2", "+seed=3,4", "algorithm.K=2,4", "num_rounds=3", "num_rounds=4"]
    parsed = OverridesParser.create().parse_overrides(overrides)
    require_swept_once(parsed)
    assert replaced_by_axes(parsed) == {0, 1}


@pytest.mark.parametrize("sweeper", [[], ["hydra/sweeper=optuna", "hydra.sweeper.n_trials=4"]])
def test_jobs_of_such_a_sweep_vary(sweeper: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    job = ["experiment=tiny", "cluster.backend=loopback", "num_rounds=1", "algorithm.K=1"]
    assert _sweep([*job, *sweeper, "seed=9", "seed=1,2"]) == 0
    assert {path.parent.name for path in (tmp_path / "runs").rglob("summary.json")} == {"seed=1", "seed=2"}


@pytest.mark.parametrize(
    ("outcome", "error"),
    [(JobOutcome("a", 0), UserError), (JobOutcome("a", 0, score=0.5), ValueError), (JobOutcome("a", 2), None)],
)
def test_a_search_whose_jobs_have_no_score(outcome: JobOutcome, error: type[Exception] | None, tmp_path: Path) -> None:
    """Optuna raises ValueError where there is no best trial."""

    class Search:
        launcher: Any = None

        def sweep(self, arguments: list[str]) -> None:
            self.launcher.outcomes["a"] = outcome
            raise ValueError("No trials are completed yet.")

    config = SimpleNamespace(hydra=SimpleNamespace(overrides=SimpleNamespace(task=OmegaConf.create([]))))
    if error is None:
        assert _run(Search(), config, tmp_path, []) == {"a": outcome}
    else:
        with pytest.raises(error):
            _run(Search(), config, tmp_path, [])
