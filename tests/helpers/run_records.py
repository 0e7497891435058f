"""Records as a run would leave them, with numbers of the test's own."""

import json
from pathlib import Path
from typing import Any

import yaml

from llcg_dist.report import find_runs
from llcg_dist.report.groups import Study, studies

ROW: dict[str, Any] = {
    "local_steps": 8,
    "bytes_up": 1_000_000,
    "bytes_down": 500_000,
    "feature_bytes": 20_000,
    "gradient_bytes": 3_000,
    "control_bytes": 128,
    "exchanges": 1,
    "seconds_local": 0.5,
    "seconds_exchange": 0.1,
    "seconds_correct": 0.2,
    "seconds_evaluate": 0.3,
    "seconds_round": 0.8,
}
USUAL: dict[str, dict[str, Any]] = {
    "llcg": {"rho": 1.1, "S": 1, "batchnorm_stats": "recalibrate"},
    "server_only": {"S": 1},
}
PARTITION = {
    "partitioner": "metis",
    "seed": 0,
    "num_parts": 2,
    "num_nodes": 30,
    "num_edges": 50,
    "cut_edges": 5,
    "label_counts": [12, 18],
    "parts": [
        {"nodes": 10, "edges": 20, "cut_edges": 5, "train_nodes": 6, "label_counts": [9, 1]},
        {"nodes": 20, "edges": 25, "cut_edges": 5, "train_nodes": 9, "label_counts": [3, 17]},
    ],
    "edges_between_parts": [[40, 5], [5, 50]],
}


def write_run(
    folder: Path,
    scores: list[float | None],
    algorithm: str = "llcg",
    seed: int = 3,
    settings: dict[str, Any] | None = None,
    row: dict[str, Any] | None = None,
    **summary: Any,
) -> Path:
    """`settings` by dotted key; `row` goes into every row, `summary` into summary.json."""
    folder.mkdir(parents=True)
    rows = [
        {"round": r, "val_score": score, "test_score": score, "train_loss": score and 1 - score} | ROW | (row or {})
        for r, score in enumerate(scores, start=1)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    best = max((score for score in scores if score is not None), default=None)
    content: dict[str, Any] = {
        "algorithm": algorithm,
        "batchnorm_stats": "recalibrate",
        "dataset": "synthetic",
        "model": "sage",
        "num_machines": 4,
        "metric": "accuracy",
        "seed": seed,
        "final_val_score": scores[-1],
        "best_val_score": best,
        "test_score_at_best_val": best and best - 0.0123456,
        "mb_up_per_round": 1.23456789,
        "mb_down_per_round": 0.5,
        "feature_mb_per_round": 0.02,
        "paper_mb_per_round": 3.557,
        "local_steps_total": 123456,
        "total_bytes": 7_654_321,
        "seconds_total": 12.34567,
        "peak_rss_mb_server": 500.5,
        "peak_rss_mb_machine": 400.25,
    }
    (folder / "summary.json").write_text(json.dumps(content | summary))
    usual: dict[str, Any] = {"rho": 1.0, "S": 0, "K": 8.0, "batchnorm_stats": "average"} | USUAL.get(algorithm, {})
    flat = {f"algorithm.{key}": value for key, value in usual.items()} | (settings or {})
    nested: dict[str, Any] = {"seed": seed, "run_dir": str(folder), "algorithm": {"name": algorithm}}
    for key, value in flat.items():
        group, _, name = key.rpartition(".")
        (nested.setdefault(group, {}) if group else nested)[name] = value
    (folder / "config.yaml").write_text(yaml.safe_dump(nested))
    return folder


def study_of(folder: Path) -> Study:
    """The one study that the runs in a folder make."""
    (study,) = studies(find_runs([folder]))
    return study
