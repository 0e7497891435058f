"""Figures of sweeps: the score over one swept number as a line, over each pair of them as a heat map."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from llcg_dist.report.figure import WIDTH, Figure, new_canvas
from llcg_dist.report.groups import Group, Study, is_numeric
from llcg_dist.report.style import line_style, shade_of

_SCORE = "final_val_score"


def sweep_figures(study: Study) -> list[Figure]:
    """For each method a line plot if one numeric setting was swept, a heat map for each pair if several were."""
    figures = []
    for method in dict.fromkeys(group.method for group in study.groups):
        groups = [group for group in study.groups if group.method == method and group.finished and _scores(group)]
        swept = [key for key in study.keys if _is_swept(key, groups)]
        if len(swept) == 1:
            figures.append(_line(study, method, groups, swept[0]))
        figures += [_heat_map(study, method, groups, *pair) for pair in combinations(swept, 2)]
    return figures


def _is_swept(key: str, groups: Sequence[Group]) -> bool:
    """Whether a setting is a number that differs between the groups."""
    values = [group.keys[key] for group in groups]
    return all(map(is_numeric, values)) and len(set(values)) > 1


def _scores(group: Group) -> list[float]:
    """Final validation scores of the seeds, in %."""
    return [100 * run.summary[_SCORE] for run in group.runs if run.summary[_SCORE] is not None]


def _line(study: Study, method: str, groups: Sequence[Group], key: str) -> Figure:
    """The score over `key`, with a line for each combination of the other differing settings."""
    canvas = new_canvas()
    axes = canvas.subplots()
    lines: dict[str, list[Group]] = {}
    for group in groups:
        others = [f"{study.keys[k]}={v}" for k, v in group.keys.items() if k != key and _differs(k, groups)]
        lines.setdefault(" ".join([method, *others]), []).append(group)
    data = []
    for i, (label, members) in enumerate(lines.items()):
        members = sorted(members, key=lambda group: group.keys[key])
        means = [float(np.mean(_scores(group))) for group in members]
        spreads = [_std(_scores(group)) for group in members]
        x = [group.keys[key] for group in members]
        bars: dict[str, Any] = {"yerr": spreads, "capsize": 3} if any(spreads) else {}
        axes.errorbar(x, means, label=label, **bars, **line_style(method, shade_of(i, len(lines)), i))
        for value, mean, spread, group in zip(x, means, spreads, members, strict=True):
            std = {"std": spread} if len(group.runs) > 1 else {}
            data.append({"line": label, key: value, "mean": mean, **std, "seeds": len(group.runs)})
    values = sorted({group.keys[key] for group in groups})
    if values[0] > 0 and values[-1] / values[0] >= 8:
        axes.set_xscale("log")
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()
    axes.set(xlabel=key, ylabel=f"final validation {study.metric} (%)")
    axes.grid(alpha=0.25, linewidth=0.6)
    if len(lines) > 1:
        canvas.legend(loc="outside lower center", ncols=2)
    caption = f"The score after the last round for each value of {key}"
    caption += "; bars are one standard deviation over seeds." if any("std" in row for row in data) else "."
    name, title = f"sweep_{method}_{study.keys[key]}", f"{method}: {study.keys[key]}"
    return Figure(name, title, caption, canvas, data, method=method)


def _heat_map(study: Study, method: str, groups: Sequence[Group], row_key: str, column_key: str) -> Figure:
    """The mean score for each pair of values of two swept settings."""
    rows, columns = (sorted({group.keys[key] for group in groups}) for key in (row_key, column_key))
    canvas = new_canvas(max(WIDTH, 1.9 + 0.85 * len(columns)), max(3.6, 1.4 + 0.5 * len(rows)))
    axes = canvas.subplots()
    means = np.full((len(rows), len(columns)), np.nan)
    data = []
    for (i, row), (j, column) in ((r, c) for r in enumerate(rows) for c in enumerate(columns)):
        cell = [g for g in groups if (g.keys[row_key], g.keys[column_key]) == (row, column)]
        if cell:
            scores = [score for group in cell for score in _scores(group)]
            means[i, j] = np.mean([np.mean(_scores(group)) for group in cell])  # whatever their numbers of seeds
            # A spread over other settings says nothing about the seeds.
            std = {"std": _std(scores)} if len(cell) == 1 and len(scores) > 1 else {}
            number = {"settings": len(cell), "runs": len(scores)}
            data.append({row_key: row, column_key: column, "mean": means[i, j], **std, **number})
    others = [key for key in study.keys if key not in (row_key, column_key) and _differs(key, groups)]
    most = len({tuple(str(group.keys[key]) for key in others) for group in groups})
    _draw_cells(canvas, axes, means, data, most)
    axes.set_xticks(range(len(columns)), [f"{value:g}" for value in columns])
    axes.set_yticks(range(len(rows)), [f"{value:g}" for value in rows])
    axes.set(xlabel=column_key, ylabel=row_key)
    caption = f"Final validation {study.metric} (%)" + _what_cells_are([study.keys[key] for key in others], most, data)
    name, title = (f"{study.keys[row_key]}{joint}{study.keys[column_key]}" for joint in ("_", " × "))
    return Figure(f"heat_{method}_{name}", f"{method}: {title}", caption, canvas, data, method=method)


def _what_cells_are(others: Sequence[str], most: int, data: Sequence[dict[str, Any]]) -> str:
    """The end of a heat map's caption; `others` are the settings that cells are means over."""
    if others:
        some_lack = any(row["settings"] < most for row in data)
        rest = "; a cell that lacks some of these settings says how many it has: compare it with care"
        return f", mean over {', '.join(others)}{rest if some_lack else ''}."
    return ", mean ± standard deviation over seeds." if any("std" in row for row in data) else "."


def _draw_cells(canvas: Canvas, axes: Axes, means: Any, data: Sequence[dict[str, Any]], most: int) -> None:
    """Draws the heat map with its colour bar, and mean and standard deviation in each cell; `most` is the number of
    settings that a cell can be the mean of."""
    image = axes.imshow(means, cmap="cividis", aspect="auto")
    middle, texts = (np.nanmin(means) + np.nanmax(means)) / 2, iter(data)
    for (i, j), mean in np.ndenumerate(means):
        if not np.isnan(mean):
            cell = next(texts)
            text = f"{mean:.2f}" + (f"\n± {cell['std']:.2f}" if "std" in cell else "")
            text += f"\n{cell['settings']} of {most}" if cell["settings"] < most else ""
            axes.text(j, i, text, ha="center", va="center", size=8, color="black" if mean > middle else "white")
    axes.spines[:].set_visible(False)
    canvas.colorbar(image, ax=axes, shrink=0.85).outline.set_visible(False)


def _differs(key: str, groups: Sequence[Group]) -> bool:
    """Whether the groups have different values of a setting."""
    return len({str(group.keys[key]) for group in groups}) > 1


def _std(values: Sequence[float]) -> float:
    """Sample standard deviation; 0 for a single value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
