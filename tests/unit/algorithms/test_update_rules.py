"""Which methods and how many machines updates can be judged, aggregated and protected with."""

import pytest
import torch

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config
from llcg_dist.errors import UserError
from llcg_dist.training.screening import Models

CLIP = ["algorithm.clip=1"]
NOISE = [*CLIP, "algorithm.noise=1"]
GOOD = [
    ["algorithm.screen=refuse"],
    ["algorithm.screen=clip", "algorithm=psgd_pa", "cluster.num_machines=3"],
    ["algorithm=full_sync"],  # the default asks for nothing
    ["algorithm=llcg_plus", "algorithm.aggregate=median", "algorithm.server_optimizer=momentum"],
    ["algorithm=ggs", "algorithm.aggregate=trimmed_mean", *CLIP],
    ["algorithm.aggregate=learned", "cluster.num_machines=2", "algorithm.averaging=train_nodes"],
    NOISE,
    ["algorithm=psgd_pa", "model.norm=none", *NOISE, "algorithm.noise_seed=secret"],
]
BAD = [
    (["algorithm.screen=refuse", "cluster.num_machines=2"], "algorithm.screen=refuse.*which of two is right"),
    (["algorithm.screen=clip", "algorithm=full_sync"], "algorithm.screen=clip.*full_sync averages no models"),
    (["algorithm.screen=clip", "algorithm=single"], "algorithm.screen=clip.*single averages no models"),
    (["algorithm.screen=maybe"], "algorithm.screen"),
    (["algorithm.screen_factor=1"], "algorithm.screen_factor=1.0: must be a number above 1"),
    (["algorithm.aggregate=median", "cluster.num_machines=2"], "algorithm.aggregate=median.*fewer than 3"),
    (["algorithm.aggregate=median", "algorithm=server_only"], "algorithm.aggregate=median"),
    (["algorithm.aggregate=median", "algorithm.averaging=train_nodes"], "averaging=train_nodes.*one voice"),
    (["algorithm.aggregate=trimmed_mean", "algorithm.trim=0.2"], "algorithm.trim=0.2: leaves out nobody of 4.*0.25"),
    (["algorithm.trim=0.5"], "algorithm.trim=0.5"),
    (["algorithm.aggregate=learned", "cluster.num_machines=1"], "aggregate=learned.*fewer than 2"),
    (["algorithm.aggregate=learned", "algorithm=full_sync"], "aggregate=learned: must be mean: full_sync averages no"),
    (["algorithm.mix_steps=0"], "algorithm.mix_steps=0"),
    (["algorithm.mix_lr=0"], "algorithm.mix_lr=0.0"),
    (["algorithm.noise=1"], "algorithm.noise=1.0: needs algorithm.clip"),
    (["algorithm.clip=0"], "algorithm.clip=0.0"),
    (["algorithm.delta=1"], "algorithm.delta=1.0"),
    ([*CLIP, "algorithm=full_sync"], "algorithm.clip=1.0: has no effect"),
    ([*CLIP, "algorithm=single"], "algorithm.clip=1.0: has no effect"),
    (
        [*NOISE, "algorithm=ggs", "algorithm.batchnorm_stats=recalibrate"],
        "noise=1.0.*features of other parts",
    ),
    ([*NOISE, "algorithm=psgd_pa"], "algorithm.batchnorm_stats=average: must be recalibrate with algorithm.noise"),
    ([*NOISE, "diagnostics.every=2"], "diagnostics.every=2"),
    ([*NOISE, "evaluate.both_statistics=true"], "evaluate.both_statistics"),
    (
        ["algorithm=own", "algorithm.target=tests.helpers.own_method.CoordinateMedian", "algorithm.aggregate=median"],
        "aggregation of its own",
    ),
]


@pytest.mark.parametrize("overrides", GOOD, ids=" ".join)
def test_what_goes_together(overrides: list[str]) -> None:
    build_algorithm(load_config(overrides))


@pytest.mark.parametrize(("overrides", "message"), BAD, ids=lambda value: value if isinstance(value, str) else "")
def test_what_does_not(overrides: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message) as refused:
        build_algorithm(load_config(overrides))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("aggregate", "expected"), [("mean", 252.5), ("median", 4.0), ("trimmed_mean", 4.0)])
def test_the_server_aggregates_as_it_is_told(aggregate: str, expected: float) -> None:
    method = build_algorithm(load_config([f"algorithm.aggregate={aggregate}", "algorithm=psgd_pa"]))
    updates = [torch.tensor([value]) for value in (1.0, 3.0, 5.0, 1001.0)]
    models = Models(1, torch.zeros(1), updates, [1.0] * 4, [], torch.zeros(1, dtype=torch.bool))
    assert method.aggregate(models.start, models).tolist() == [expected]
