"""Diagnostics over real processes: the training does not notice, and gradients cross in those rounds alone."""

import math
import statistics
from pathlib import Path

import pytest

from tests.helpers.run_files import bytes_crossed, model_bytes, model_sizes, rows, rows_without_times, summary
from tests.helpers.training import TINY, assert_loopback_equals_ranks, in_ranks, on_loopback

P = 2
NAMES = {"kappa_a_sq", "kappa_x_sq", "kappa_sq", "sigma_bias_sq", "sigma_var_sq", "sigma_global_sq"}
NAMES |= {"g_local", "g_global", "lipschitz", "theorem1_K", "theorem2_S"}
AUTO = ["algorithm.S=auto", "algorithm.S_max=4", "train.server_batch_size=64"]
MEASURED = ["diagnostics.every=2", "diagnostics.hessian_steps=2"]
JOBS = {
    "llcg": [],
    "measured": MEASURED,
    "measured_int8": [*MEASURED, "algorithm.exchange_dtype=int8"],
    "halo": ["algorithm=subgraph_approx"],
    "measured_halo": ["algorithm=subgraph_approx", "diagnostics.every=3", "diagnostics.hessian_steps=2"],
    "auto_s": AUTO,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_ranks(tmp_path_factory.mktemp("diagnostics"), {name: [*TINY, *JOBS[name]] for name in JOBS})


@pytest.mark.parametrize("name", ["measured", "measured_int8", "measured_halo", "auto_s"])
def test_loopback_measures_the_same_to_the_last_digit(runs: Path, name: str) -> None:
    assert_loopback_equals_ranks(runs, name, *TINY, *JOBS[name])


@pytest.mark.parametrize(("name", "plain"), [("measured", "llcg"), ("measured_halo", "halo")])
def test_measuring_does_not_change_a_bit_of_training(runs: Path, name: str, plain: str) -> None:
    for file in ("model.pt", "best.pt"):
        assert (runs / name / file).read_bytes() == (runs / plain / file).read_bytes()
    for measured, undisturbed in zip(rows_without_times(runs / name), rows_without_times(runs / plain), strict=True):
        del undisturbed["gradient_bytes"]
        more_control = measured["control_bytes"] - undisturbed.pop("control_bytes")
        assert 0 <= more_control <= P * 4096  # a request to measure, in the rounds in which it is due
        assert undisturbed.items() <= measured.items()


def test_every_second_round_is_measured_and_pays_one_gradient_a_machine(runs: Path) -> None:
    model, norm_statistics = model_sizes(runs / "measured")
    gradients = P * (model - norm_statistics)
    for row in rows(runs / "measured"):
        due = row["round"] % 2 == 0
        assert row["gradient_bytes"] == (gradients if due else 0)
        assert (row.keys() & NAMES) == (NAMES if due else set())
        assert row["exchanges"] == 1
    crossed = bytes_crossed(runs / "measured")
    assert crossed["gradients", "up"] == 2 * gradients
    assert ("gradients", "down") not in crossed
    assert summary(runs / "measured")["gradient_mb_per_round"] == pytest.approx(gradients / 2 / 1e6)


@pytest.mark.parametrize(("name", "round_"), [("measured", 2), ("measured", 4), ("measured_halo", 3)])
def test_the_theorems_follow_from_what_is_measured(runs: Path, name: str, round_: int) -> None:
    """The formulas of docs/studies/diagnostics.md, worked out again; T counts local and correction steps."""
    found = rows(runs / name)
    row, T = found[round_ - 1], sum(row["local_steps"] + row.get("S", 0) for row in found)
    assert min(row[key] for key in ("kappa_a_sq", "kappa_x_sq", "sigma_var_sq", "g_global", "lipschitz")) > 0
    assert row["kappa_sq"] == row["kappa_a_sq"] + row["kappa_x_sq"]
    assert 0 < row["sigma_var_sq_error"] < row["sigma_var_sq"]
    L = row["lipschitz"]
    assert row["theorem1_K"] == pytest.approx(math.sqrt(2) * T**0.25 / (8 * L * P**0.75))
    assert (row["theorem2_S"] is None) == ("theorem_note" in row) == (T <= L**2 * P)
    if row["theorem2_S"] is not None:
        error = (row["kappa_sq"] + 2 * row["sigma_bias_sq"]) / (1 - L * math.sqrt(P / T))
        steps = (error - row["g_local"]) * row["local_steps"] / row["g_global"]
        assert row["theorem2_S"] == pytest.approx(max(0, steps))


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
    assert bytes_crossed(runs / "auto_s") == bytes_crossed(runs / "llcg")


def test_choosing_and_measuring_go_on_exactly_where_they_were(tmp_path: Path) -> None:
    """Four rounds at once, or two and then two more."""
    settings = [*TINY, *AUTO, *MEASURED, "algorithm.rho=1.0", "algorithm.schedule=literal"]
    at_once = on_loopback(tmp_path, "at_once", *settings)
    on_loopback(tmp_path, "resumed", *settings, "num_rounds=2")
    resumed = on_loopback(tmp_path, "resumed", *settings)
    assert model_bytes(at_once) == model_bytes(resumed)
    for one, other in zip(rows_without_times(at_once), rows_without_times(resumed), strict=True):
        if one["round"] <= 2:  # the theorems' T is the length of the run as it was then planned
            one, other = ({k: v for k, v in row.items() if "theorem" not in k} for row in (one, other))
        assert one == other
