"""What the rows of an unfinished run say so far, in the form of a summary.json."""

from collections.abc import Sequence
from typing import Any

from llcg_dist.config.algorithm import method_label
from llcg_dist.records.columns import sent_bytes

Row = dict[str, Any]


def partial_summary(settings: dict[str, Any], rows: Sequence[Row], starts: Sequence[Row]) -> dict[str, Any]:
    """The summary of the rounds so far; `settings` by dotted key, `starts` as starts.json has them."""
    best = max((row for row in rows if row["val_score"] is not None), key=lambda row: row["val_score"], default=None)

    def mean_megabytes(column: str) -> float:
        return float(sum(row[column] for row in rows) / len(rows) / 1e6)

    return {
        "algorithm": method_label(str(settings.get("algorithm.name", "?")), settings.get("algorithm.target")),
        "dataset": str(settings.get("dataset.name", "?")),
        "model": str(settings.get("model.name", "?")),
        "metric": str((starts[-1].get("metric") if starts else None) or "score"),
        "seed": settings.get("seed", 0),
        "num_machines": settings.get("cluster.num_machines", 0),
        "local_steps_total": sum(row["local_steps"] for row in rows),
        "total_bytes": sum(map(sent_bytes, rows)),
        "final_val_score": rows[-1]["val_score"],
        "best_val_score": best and best["val_score"],
        "test_score_at_best_val": best and best["test_score"],
        "mb_up_per_round": mean_megabytes("bytes_up"),
        "mb_down_per_round": mean_megabytes("bytes_down"),
        "feature_mb_per_round": mean_megabytes("feature_bytes"),
        "paper_mb_per_round": None,
        "seconds_total": sum(row["seconds_round"] for row in rows),
        "peak_rss_mb_server": None,
        "peak_rss_mb_machine": None,
    }
