"""The paper's results (Table 1 and Figure 11, in table1.csv) for runs of the same dataset, model and method."""

import csv
import functools
import importlib.resources
from typing import Any

from llcg_dist.report.runs import Run

# {dataset: (its name in table1.csv, number of machines in the paper)}.
_DATASETS = {
    "flickr": ("flickr", 8),
    "ogbn-proteins": ("proteins", 8),
    "ogbn-arxiv": ("arxiv", 8),
    "reddit": ("reddit", 8),
    "ogbn-products": ("products (16)", 16),
    "mag240m": ("mag240m (16)", 16),
}


def paper_result(run: Run) -> dict[str, Any] | None:
    """Rounds, mean, std and MB a round (None where not printed) of the paper's run with these settings, if any."""
    summary = run.summary
    dataset, machines = _DATASETS.get(summary["dataset"], ("", 0))
    if summary["num_machines"] != machines or run.settings.get("dataset.subset") is not None:
        return None
    return _table().get((dataset, summary["model"], summary["algorithm"]))


@functools.cache
def _table() -> dict[tuple[str, str, str], dict[str, Any]]:
    """table1.csv as {(dataset, model, method): result}."""
    text = (importlib.resources.files("llcg_dist.report") / "table1.csv").read_text()
    return {
        (row["dataset"], row["model"], row["method"]): {
            "rounds": int(row["rounds"]),
            "mean": float(row["mean"]),
            "std": float(row["std"]),
            "mb": float(row["MB"]) if row["MB"] else None,
        }
        for row in csv.DictReader(text.splitlines())
    }
