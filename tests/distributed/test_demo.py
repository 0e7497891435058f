"""What the demo is for: ignoring cut edges costs accuracy, correcting globally wins it back."""

import statistics
from pathlib import Path

import torch

from llcg_dist import train
from llcg_dist.config.compose import load_config
from tests.helpers.jobs import llcg, summary

SEEDS = (0, 1)


def final_score(tmp_path: Path, *overrides: str) -> float:
    """Mean final validation score on loopback, which is proved to have the bits of real processes."""
    torch.set_num_threads(1)
    scores = []
    for seed in SEEDS:
        run_dir = tmp_path / "-".join([*overrides, str(seed)]).replace("/", "_")
        settings = [*overrides, f"seed={seed}", "cluster.backend=loopback", f"partition.root={tmp_path}/parts"]
        train.run(load_config([*settings, f"run_dir='{run_dir}'"]), train.Rank())
        scores.append(summary(run_dir)["final_val_score"])
    return statistics.mean(scores)


def test_llcg_wins_back_what_cut_edges_cost(tmp_path: Path) -> None:
    llcg_score = final_score(tmp_path, "algorithm=llcg")
    single = final_score(tmp_path, "algorithm=single")
    assert single > llcg_score > final_score(tmp_path, "algorithm=server_only")
    for statistics_ in ("average", "recalibrate"):
        psgd_pa = final_score(tmp_path, "algorithm=psgd_pa", f"algorithm.batchnorm_stats={statistics_}")
        assert llcg_score >= psgd_pa + 0.05


def test_report_compares_runs(tmp_path: Path) -> None:
    for method in ("llcg", "server_only"):
        settings = ["experiment=tiny", "cluster.backend=loopback", f"partition.root={tmp_path}/parts"]
        train.run(load_config([*settings, f"algorithm={method}", f"run_dir={tmp_path}/runs/{method}"]), train.Rank())
    outcome = llcg("report", str(tmp_path / "runs"))
    assert outcome.code == 0, outcome.err
    assert "server_only" in outcome.out
    page = (tmp_path / "runs" / "report" / "index.html").read_text()
    assert "llcg" in page
    assert (tmp_path / "runs" / "report" / "curves.png").read_bytes().startswith(b"\x89PNG")
