"""Results per class: F1 of every group by class, the confusion matrix and a table of the best distributed method."""

import statistics
from typing import Any

import numpy as np

from llcg_dist.records.classes import most_frequent
from llcg_dist.report.figure import Figure, new_canvas, tag_series
from llcg_dist.report.gaps import best_distributed
from llcg_dist.report.groups import Group, Study
from llcg_dist.report.lines import legend, legend_shape, styles
from llcg_dist.report.runs import Run
from llcg_dist.report.tables import EMPTY_CELL, Cell, Row

_MAX_CLASSES = 40
"""Classes with a row in the figures; the others are in the CSV."""
_MAX_CLASSES_WITH_NUMBERS = 15
_SCORES = ("precision", "recall", "f1")


def class_figures(study: Study) -> list[Figure]:
    """F1 by class and the confusion matrix; none where no run has recorded them."""
    groups = {i: group for i, group in enumerate(study.groups) if _scores(group)}
    if not groups:
        return []
    best = _shown_group(study)
    figures = [_f1_figure(study, groups)]
    return figures + ([_confusion_figure(best)] if best and "confusion" in _scores(best)[0] else [])


def class_table(study: Study) -> tuple[str, list[Row]]:
    """(title, rows) of precision, recall, F1 and support of every class with the best distributed method."""
    group = _shown_group(study)
    if group is None:
        return "", []
    rows = []
    for values in _mean_scores(group):
        row = {"class": Cell(values["class"], values["class"])}
        for key in _SCORES:
            name = f"{'F1' if key == 'f1' else key} %"
            row[name] = EMPTY_CELL if values[key] is None else Cell(f"{values[key]:.2f}", values[key])
        rows.append(row | {"support": Cell(f"{values['support']:,}", values["support"])})
    seeds = f", mean over {len(group.runs)} seeds" if len(group.runs) > 1 else ""
    return f"Every class: {group.label}, {_split(group.runs[0])} nodes{seeds}", rows


def _shown_group(study: Study) -> Group | None:
    """The best distributed group; the first one with results where that has none."""
    best = best_distributed(study)
    return best if best and _scores(best) else next((group for group in study.groups if _scores(group)), None)


def _split(run: Run) -> str:
    """The nodes whose results are shown: the test nodes, or the validation nodes of a graph without."""
    return "test" if run.classes and run.classes["test"] else "validation"


def _scores(group: Group) -> list[dict[str, Any]]:
    """The class results of those seeds that have recorded them."""
    found = [run.classes["test"] or run.classes["val"] for run in group.runs if run.classes]
    return [scores for scores in found if scores]


def _mean_scores(group: Group) -> list[dict[str, Any]]:
    """For every class the mean over the seeds, in %; None where no seed has the score."""
    rows = []
    for of_seeds in zip(*(scores["classes"] for scores in _scores(group)), strict=False):
        row = {"class": of_seeds[0]["class"], "support": of_seeds[0]["support"]}
        for key in _SCORES:
            values = [100 * entry[key] for entry in of_seeds if entry[key] is not None]
            row[key] = statistics.fmean(values) if values else None
        rows.append(row)
    return rows


def _f1_figure(study: Study, groups: dict[int, Group]) -> Figure:
    """A row per class, the most frequent ones, with a mark for each group."""
    means = {index: _mean_scores(group) for index, group in groups.items()}
    shown = [row["class"] for row in most_frequent(next(iter(means.values())), _MAX_CLASSES)]
    width = 11.4
    lines, _ = legend_shape([group.label for group in groups.values()], width)
    canvas = new_canvas(width, 1.2 + 0.2 * lines + 0.24 * max(6, len(shown)))
    axes = canvas.subplots()
    all_styles = styles(study.groups)
    data = []
    for index, rows in means.items():
        group, points = groups[index], {row["class"]: row for row in rows}
        f1 = [points[name]["f1"] if name in points else None for name in shown]
        style = all_styles[index] | {"linestyle": "", "markersize": 5.5}
        (marks,) = axes.plot(
            [np.nan if value is None else value for value in f1], range(len(shown)), label=group.label, **style
        )
        tag_series(marks, index)
        data += [{"group": group.label} | row for row in rows]
    axes.set_yticks(range(len(shown)), shown)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    split = _split(next(iter(groups.values())).runs[0])
    axes.set(xlabel=f"F1 on the {split} nodes (%)")
    axes.grid(alpha=0.25, linewidth=0.6)
    legend(canvas, axes)
    hidden = len(next(iter(means.values()))) - len(shown)
    caption = (
        "How well each class is found by the model of the best validation score: F1 is the harmonic mean of precision "
        "and recall; the CSV holds all three, in %."
        + (f" {hidden} rarer classes are in the CSV only." if hidden else "")
    )
    return Figure("classes", "Results per class", caption, canvas, data, wide=True)


def _confusion_figure(group: Group) -> Figure:
    """The confusion matrix of the first seed, of the most frequent classes, as shares of each true class."""
    scores = _scores(group)[0]
    shown = {row["class"] for row in most_frequent(scores["classes"], _MAX_CLASSES)}
    names = [row["class"] for row in scores["classes"]]
    kept = [i for i, name in enumerate(names) if name in shown][:_MAX_CLASSES]
    counts = np.array(scores["confusion"], float)
    shares = (100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))[np.ix_(kept, kept)]
    size = min(10.0, 2.4 + 0.34 * len(kept))
    canvas = new_canvas(max(5.6, size + 1.2), max(3.6, size))
    axes = canvas.subplots()
    image = axes.imshow(shares, cmap="cividis", vmin=0, vmax=100)
    if len(kept) <= _MAX_CLASSES_WITH_NUMBERS:
        for (row, column), share in np.ndenumerate(shares):
            colour = "black" if share > 55 else "white"
            axes.text(column, row, f"{share:.0f}", ha="center", va="center", color=colour, size=8)
    axes.set_xticks(range(len(kept)), [names[i] for i in kept], rotation=90)
    axes.set_yticks(range(len(kept)), [names[i] for i in kept])
    axes.set(xlabel="predicted class", ylabel="true class")
    axes.spines[:].set_visible(False)
    canvas.colorbar(image, ax=axes, shrink=0.85, label="% of the true class").outline.set_visible(False)
    data = [{"true class": names[i]} | dict(zip(names, row, strict=True)) for i, row in enumerate(scores["confusion"])]
    caption = (
        f"Where the {_split(group.runs[0])} nodes of each class go, in % of the class, with {group.label} "
        f"(seed {group.runs[0].summary['seed']}); the CSV holds the numbers of nodes."
    )
    return Figure("confusion", "Confusion matrix", caption, canvas, data, wide=len(kept) > 8, method=group.method)
