"""What sweeps show: the score over one swept number as a line, over each pair of them as a heat map."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from llcg_dist.report.figure import WIDTH, Figure, canvas
from llcg_dist.report.groups import Group, Study, is_numeric
from llcg_dist.report.style import line_style

_SCORE = "final_val_score"


def sweep_figures(study: Study) -> list[Figure]:
    figures = []
    for method in dict.fromkeys(group.method for group in study.groups):
        groups = [group for group in study.groups if group.method == method and _scores(group)]
        swept = [key for key in study.keys if _is_swept(key, groups)]
        if len(swept) == 1:
            figures.append(_line(study, method, groups, swept[0]))
        figures += [_heat_map(study, method, groups, *pair) for pair in combinations(swept, 2)]
    return figures


def _is_swept(key: str, groups: Sequence[Group]) -> bool:
    values = [group.keys[key] for group in groups]
    return all(map(is_numeric, values)) and len(set(values)) > 1


def _scores(group: Group) -> list[float]:
    return [100 * run.summary[_SCORE] for run in group.runs if run.summary[_SCORE] is not None]


def _line(study: Study, method: str, groups: Sequence[Group], key: str) -> Figure:
    """A line for each combination of the other settings."""
    drawn = canvas()
    axes = drawn.subplots()
    lines: dict[str, list[Group]] = {}
    for group in groups:
        others = [f"{study.keys[k]}={v}" for k, v in group.keys.items() if k != key and _differs(k, groups)]
        lines.setdefault(" ".join([method, *others]), []).append(group)
    data = []
    for place, (label, members) in enumerate(lines.items()):
        members = sorted(members, key=lambda group: group.keys[key])
        means = [float(np.mean(_scores(group))) for group in members]
        spreads = [_std(_scores(group)) for group in members]
        x = [group.keys[key] for group in members]
        axes.errorbar(
            x, means, yerr=spreads, capsize=3, label=label, **line_style(method, _share(place, len(lines)), place)
        )
        for value, mean, spread, group in zip(x, means, spreads, members, strict=True):
            data.append({"line": label, key: value, "mean": mean, "std": spread, "seeds": len(group.runs)})
    values = sorted({group.keys[key] for group in groups})
    if values[0] > 0 and values[-1] / values[0] >= 8:
        axes.set_xscale("log")
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()
    axes.set(xlabel=key, ylabel=f"final validation {study.metric} (%)")
    axes.grid(alpha=0.25, linewidth=0.6)
    if len(lines) > 1:
        drawn.legend(loc="outside lower center", ncols=2)
    caption = f"The score after the last round for each value of {key}; bars are one standard deviation over seeds."
    return Figure(f"sweep_{method}_{study.keys[key]}", f"{method}: {study.keys[key]}", caption, drawn, data)


def _heat_map(study: Study, method: str, groups: Sequence[Group], row_key: str, column_key: str) -> Figure:
    rows, columns = (sorted({group.keys[key] for group in groups}) for key in (row_key, column_key))
    drawn = canvas(max(WIDTH, 1.9 + 0.85 * len(columns)), max(3.6, 1.4 + 0.5 * len(rows)))
    axes = drawn.subplots()
    means = np.full((len(rows), len(columns)), np.nan)
    data = []
    for (i, row), (j, column) in ((r, c) for r in enumerate(rows) for c in enumerate(columns)):
        cell = [g for g in groups if (g.keys[row_key], g.keys[column_key]) == (row, column)]
        found = [score for group in cell for score in _scores(group)]
        if found:
            means[i, j] = np.mean(found)
            spread = {"mean": means[i, j], "std": _std(found), "runs": len(found)}
            data.append({row_key: row, column_key: column, **spread})
    _draw_cells(drawn, axes, means, data)
    axes.set_xticks(range(len(columns)), [f"{value:g}" for value in columns])
    axes.set_yticks(range(len(rows)), [f"{value:g}" for value in rows])
    axes.set(xlabel=column_key, ylabel=row_key)
    others = [study.keys[key] for key in study.keys if key not in (row_key, column_key) and _differs(key, groups)]
    caption = f"Final validation {study.metric} (%), mean ± standard deviation over seeds" + (
        f", and over {', '.join(others)}." if others else "."
    )
    name, title = (f"{study.keys[row_key]}{joint}{study.keys[column_key]}" for joint in ("_", " × "))
    return Figure(f"heat_{method}_{name}", f"{method}: {title}", caption, drawn, data)


def _draw_cells(drawn: Canvas, axes: Axes, means: Any, data: Sequence[dict[str, Any]]) -> None:
    image = axes.imshow(means, cmap="cividis", aspect="auto")
    middle, texts = (np.nanmin(means) + np.nanmax(means)) / 2, iter(data)
    for (i, j), mean in np.ndenumerate(means):
        if not np.isnan(mean):
            cell = next(texts)
            text = f"{mean:.2f}" + (f"\n± {cell['std']:.2f}" if cell["runs"] > 1 else "")
            axes.text(j, i, text, ha="center", va="center", size=8, color="black" if mean > middle else "white")
    axes.spines[:].set_visible(False)
    drawn.colorbar(image, ax=axes, shrink=0.85).outline.set_visible(False)


def _differs(key: str, groups: Sequence[Group]) -> bool:
    return len({str(group.keys[key]) for group in groups}) > 1


def _share(place: int, of: int) -> float | None:
    return place / (of - 1) if of > 1 else None


def _std(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
