"""Curves of several runs: one colour per method, the mean over seeds as a line and their range as a band."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

from llcg_dist.report.runs import Run  # noqa: E402

# Okabe and Ito's palette, told apart with every common form of colour blindness; a method keeps its colour everywhere.
COLOURS = {
    "single": "#000000",
    "llcg": "#0072B2",
    "psgd_pa": "#D55E00",
    "server_only": "#009E73",
    "ggs": "#CC79A7",
    "full_sync": "#E69F00",
    "subgraph_approx": "#56B4E9",
}


def draw_curves(runs: Sequence[Run], target: Path) -> None:
    """Validation score and training loss by round."""
    figure, (scores, losses) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for label, group in by_label(runs).items():
        _band(scores, group, label, "val_score", 100)
        _band(losses, group, label, "train_loss", 1)
    metric = runs[0].summary["metric"]
    scores.set(xlabel="round", ylabel=f"validation {metric} (%)", title="whole graph, after each round")
    losses.set(xlabel="round", ylabel="training loss", title="whole graph, after each round")
    for axes in (scores, losses):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    if scores.get_lines():
        scores.legend(frameon=False)
    figure.savefig(target, dpi=110)
    plt.close(figure)


def by_label(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs of one method, apart by BatchNorm statistics only where a method comes with both."""
    kinds = defaultdict(set)
    for run in runs:
        kinds[run.method].add(run.summary["batchnorm_stats"])
    groups = defaultdict(list)
    for run in runs:
        both = len(kinds[run.method]) > 1
        groups[f"{run.method} ({run.summary['batchnorm_stats']})" if both else run.method].append(run)
    return dict(groups)


def _band(axes: plt.Axes, group: Sequence[Run], label: str, key: str, scale: float) -> None:
    length = min(len(run.rows) for run in group)
    rounds = np.array(group[0].column("round")[:length])
    values = np.array([[np.nan if v is None else v for v in run.column(key)[:length]] for run in group], float) * scale
    judged = ~np.isnan(values).all(axis=0)
    if not judged.any():
        return
    rounds, values = rounds[judged], values[:, judged]
    style = "--" if "(average)" in label else "-"
    colour = COLOURS.get(group[0].method, "#999999")
    axes.plot(rounds, np.nanmean(values, axis=0), style, color=colour, label=label)
    axes.fill_between(rounds, np.nanmin(values, axis=0), np.nanmax(values, axis=0), color=colour, alpha=0.15, lw=0)
