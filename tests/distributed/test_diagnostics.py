"""Diagnostics over real processes: the training does not notice, and gradients cross in those rounds alone."""

import math
import statistics
from pathlib import Path

import pytest

from llcg_dist import train
from llcg_dist.config.compose import load_config
from tests.distributed.conftest import BASELINES, TINY
from tests.distributed.test_baselines import sizes, wire
from tests.distributed.test_equivalence import without_times
from tests.helpers.jobs import rows, summary

NAMES = {"kappa_a_sq", "kappa_x_sq", "kappa_sq", "sigma_bias_sq", "sigma_var_sq", "sigma_global_sq"}
NAMES |= {"g_local", "g_global", "lipschitz", "theorem1_K", "theorem2_S"}


@pytest.mark.parametrize(("name", "plain"), [("diagnosed", "llcg"), ("diagnosed_halo", "subgraph_approx")])
def test_measuring_does_not_change_a_bit_of_training(runs: Path, name: str, plain: str) -> None:
    for file in ("model.pt", "best.pt"):
        assert (runs / name / file).read_bytes() == (runs / plain / file).read_bytes()
    for measured, undisturbed in zip(rows(runs / name), rows(runs / plain), strict=True):
        common = {key: measured[key] for key in undisturbed if key != "gradient_bytes"}
        assert without_times(common).items() <= without_times(undisturbed).items()


def test_every_second_round_is_measured_and_pays_one_gradient_a_machine(runs: Path) -> None:
    model, statistics = sizes(runs / "diagnosed")
    gradient = 2 * (model - statistics)
    for row in rows(runs / "diagnosed"):
        due = row["round"] % 2 == 0
        assert row["gradient_bytes"] == (gradient if due else 0)
        assert (row.keys() & NAMES) == (NAMES if due else set())
        assert row["exchanges"] == 1
    crossed = wire(runs / "diagnosed")
    assert crossed["gradients", "up"] == 2 * gradient
    assert ("gradients", "down") not in crossed
    assert summary(runs / "diagnosed")["gradient_mb_per_round"] == pytest.approx(gradient / 2 / 1e6)


def test_what_is_measured_makes_sense(runs: Path) -> None:
    for row in (rows(runs / "diagnosed")[1], rows(runs / "diagnosed_halo")[2]):
        assert min(row[name] for name in ("kappa_a_sq", "kappa_x_sq", "sigma_var_sq", "g_global", "lipschitz")) > 0
        assert row["kappa_sq"] == row["kappa_a_sq"] + row["kappa_x_sq"]
        assert 0 < row["sigma_var_sq_error"] < row["sigma_var_sq"]


def test_auto_chooses_says_why_and_sends_nothing_for_it(runs: Path) -> None:
    found = rows(runs / "auto_s")
    mean_steps = statistics.mean(row["local_steps"] for row in found)
    for row in found:
        assert row["auto_s_demand"] == pytest.approx(mean_steps * (1 - row["auto_s_useful"]))
        assert row["S"] == math.floor(min(max(row["auto_s_demand"], 1), 4))
    why = {"g_global", "g_local", "kappa_a", "divergence", "alignment", "useful", "demand"}
    why = {f"auto_s_{name}" for name in why}
    assert all(why <= row.keys() for row in found)
    assert all(row["S"] == 1 and not why & row.keys() for row in rows(runs / "llcg"))
    assert wire(runs / "auto_s") == wire(runs / "llcg")


def test_choosing_and_measuring_go_on_exactly_where_they_were(runs: Path) -> None:
    """Four rounds at once, or two and then two more."""
    settings = [*TINY, f"partition.root={runs}/parts", "cluster.backend=loopback", "algorithm.rho=1.0"]
    settings += [*BASELINES["auto_s"], *BASELINES["diagnosed"], "algorithm.schedule=literal"]
    for name, rounds in (("auto_whole", (4,)), ("auto_resumed", (2, 4))):
        for count in rounds:
            job = [*settings, f"num_rounds={count}", f"run_dir={runs}/{name}"]
            train.run(load_config(job), train.Rank())
    assert (runs / "auto_whole" / "model.pt").read_bytes() == (runs / "auto_resumed" / "model.pt").read_bytes()
    for whole, resumed in zip(rows(runs / "auto_whole"), rows(runs / "auto_resumed"), strict=True):
        if whole["round"] <= 2:  # the theorems' T is the length of the run as it was then planned
            whole, resumed = ({k: v for k, v in row.items() if "theorem" not in k} for row in (whole, resumed))
        assert without_times(whole) == without_times(resumed)
