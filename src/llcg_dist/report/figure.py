"""A figure: drawn once, written as a PNG, as SVG inside the page, and as the CSV that it shows."""

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine

from llcg_dist.report.style import COLOURS, INK

Cells = Sequence[dict[str, Any]]
WIDTH = 5.6
"""Inches of a figure that takes half of the page."""
_DPI = 110


@dataclass(frozen=True)
class Figure:
    name: str
    """Of its files."""
    title: str
    caption: str
    """What a newcomer sees in it."""
    canvas: Canvas
    data: Cells
    hover: list[dict[str, Any]] = field(default_factory=list)
    """For every pair of axes: where it lies and the points of its lines."""
    wide: bool = False


def canvas(width: float = WIDTH, height: float = 3.6) -> Canvas:
    return Canvas(figsize=(width, height), dpi=_DPI, layout="constrained")


def write_files(figure: Figure, folder: Path) -> None:
    save_png(figure.canvas, folder / f"{figure.name}.png")
    write_csv(folder / f"{figure.name}.csv", figure.data)


def _lay_out(drawn: Canvas) -> None:
    """Once: it takes longer than drawing, and every file shall have the same places."""
    if isinstance(engine := drawn.get_layout_engine(), ConstrainedLayoutEngine):
        engine.execute(drawn)
        drawn.set_layout_engine("none")


def save_png(canvas_: Canvas, path: Path) -> None:
    _lay_out(canvas_)
    FigureCanvasAgg(canvas_).print_png(path, metadata={"Software": None})  # savefig would draw everything twice


def write_csv(path: Path, rows: Cells) -> None:
    with path.open("w", newline="") as file:
        keys = list(dict.fromkeys(key for row in rows for key in row))
        writer = csv.DictWriter(file, keys, restval="")
        writer.writeheader()
        writer.writerows(rows)


def inline_svg(figure: Figure) -> str:
    """The picture as a part of the page: text stays text, and colours follow the page into the dark.

    Its background goes: the PNG, which keeps it, is written before.
    """
    buffer = io.StringIO()
    _lay_out(figure.canvas)
    for patch in (figure.canvas.patch, *(axes.patch for axes in figure.canvas.axes)):
        patch.set_facecolor("none")
    FigureCanvasSVG(figure.canvas).print_svg(buffer, metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg)
    svg = re.sub(r'<svg[^>]*viewBox="([^"]*)"[^>]*>', r'<svg role="img" viewBox="\1">', svg, count=1)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    svg = re.sub(r'id="([^"]+)"', rf'id="{figure.name}-\1"', svg)
    svg = re.sub(r"(href=\"|url\()#", rf"\1#{figure.name}-", svg)
    svg = re.sub(r"'DejaVu Sans'[^;\"]*", "system-ui, sans-serif", svg)
    for method, colour in COLOURS.items():
        svg = re.sub(colour, "currentColor" if colour == INK else f"var(--{method})", svg, flags=re.IGNORECASE)
    return re.sub(r"\n\s*", "\n", svg)


def hover_of(drawn: Canvas, axes: Axes, series: Cells) -> dict[str, Any]:
    """Where a pointer is in data: the axes' corners in the picture's own units (points from the upper left)."""
    _lay_out(drawn)
    width, height = 72 * drawn.get_size_inches()
    box = axes.get_position()
    corners = [box.x0 * width, (1 - box.y1) * height, box.x1 * width, (1 - box.y0) * height]
    scale = {"xlim": axes.get_xlim(), "ylim": axes.get_ylim(), "log": [axes.get_xscale(), axes.get_yscale()]}
    return {"box": [round(c, 1) for c in corners], **scale, "unit": axes.get_xlabel(), "series": list(series)}


def hover_json(figure: Figure) -> str:
    return json.dumps(figure.hover, separators=(",", ":")).replace("<", "\\u003c")
