"""How often a model is evaluated, and with which of BatchNorm's statistics."""

import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.training.evaluation import affordable_every, scored_statistics


@pytest.mark.parametrize(
    ("evaluate", "local", "every", "better"),
    [
        (0.5, 1.0, 1, None),
        (1.0, 1.0, 1, None),
        (1.05, 1.0, 1, None),
        (3.0, 1.0, 1, 20),
        (3.0, 1.0, 20, None),
        (1, 0, 1, 10**7),
    ],
)
def test_how_rarely_an_evaluation_that_machines_wait_for_is_affordable(
    evaluate: float, local: float, every: int, better: int | None
) -> None:
    found = affordable_every(evaluate, local, every)
    assert found == better
    if found:
        waited = (evaluate - local) / (found * max(local, 1e-6))
        assert waited <= 0.1 + 1e-9
        assert affordable_every(evaluate, local, found) is None


@pytest.mark.parametrize(
    ("overrides", "kinds"),
    [
        (["algorithm=llcg"], ("recalibrate",)),
        (["algorithm=psgd_pa"], ("average",)),
        (["algorithm=llcg", "evaluate.both_statistics=true"], ("average", "recalibrate")),
        (["algorithm=llcg_plus"], ("average", "recalibrate")),
        (["algorithm=llcg_plus", "model.norm=none"], ("recalibrate",)),
    ],
)
def test_statistics_that_are_scored(overrides: list[str], kinds: tuple[str, ...]) -> None:
    assert scored_statistics(load_config(overrides)) == kinds
