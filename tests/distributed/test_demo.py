"""What the demo is for: ignoring cut edges costs accuracy, correcting globally wins it back."""

from pathlib import Path

import pytest

from tests.helpers.jobs import llcg
from tests.helpers.run_files import summary
from tests.helpers.training import on_loopback, train_in_process


def final_score(tmp_path: Path, seed: int, *overrides: str) -> float:
    """The final validation score on loopback, which is proved to have the bits of real processes."""
    run_dir = tmp_path / "-".join(overrides).replace("/", "_")
    settings = [f"seed={seed}", f"partition.root={tmp_path}/parts", f"run_dir='{run_dir}'"]
    train_in_process("experiment=demo", *overrides, *settings)
    return float(summary(run_dir)["final_val_score"])


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.full)])
def test_llcg_wins_back_what_cut_edges_cost(seed: int, tmp_path: Path) -> None:
    llcg_score = final_score(tmp_path, seed, "algorithm=llcg")
    single = final_score(tmp_path, seed, "algorithm=single")
    assert single > llcg_score > final_score(tmp_path, seed, "algorithm=server_only")
    for statistics in ("average", "recalibrate"):
        psgd_pa = final_score(tmp_path, seed, "algorithm=psgd_pa", f"algorithm.batchnorm_stats={statistics}")
        assert llcg_score >= psgd_pa + 0.05


def test_report_compares_runs(tmp_path: Path) -> None:
    for method in ("llcg", "server_only"):
        on_loopback(tmp_path, f"runs/{method}", "experiment=tiny", f"algorithm={method}")
    outcome = llcg("report", str(tmp_path / "runs"))
    assert outcome.code == 0, outcome.err
    page = (tmp_path / "runs" / "report" / "index.html").read_text()
    for method in ("llcg", "server_only"):
        score = f"{100 * summary(tmp_path / 'runs' / method)['best_val_score']:.2f}"
        [row] = [line for line in outcome.out.splitlines() if line.startswith(method)]
        assert score in row.split()
        assert method in page
        assert score in page
    assert (tmp_path / "runs" / "report" / "curves.png").read_bytes().startswith(b"\x89PNG")
