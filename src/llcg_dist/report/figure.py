"""Figures: written as PNG, as SVG inside the page, and as CSV with the data that they show."""

import base64
import csv
import html
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine

from llcg_dist.report.style import COLOURS, INK

Cells = Sequence[dict[str, Any]]
WIDTH = 5.6
"""Width in inches of a figure that takes half of the page."""
_DPI = 110


@dataclass(frozen=True)
class Figure:
    """A Matplotlib figure with its texts and data."""

    name: str
    """File name, without suffix."""
    title: str
    caption: str
    """Explains the figure to a newcomer."""
    canvas: Canvas
    data: Cells
    """Rows of the CSV file."""
    hover: list[dict[str, Any]] = field(default_factory=list)
    """For every axes: its position in the picture and the points of its lines, for the page's tooltips."""
    wide: bool = False
    """Whether it takes the full width of the page."""
    method: str = ""
    """The method that it is about, where that is one only: the page's filter hides it with the method."""


def new_canvas(width: float = WIDTH, height: float = 3.6) -> Canvas:
    """An empty Matplotlib figure; sizes in inches."""
    return Canvas(figsize=(width, height), dpi=_DPI, layout="constrained")


def files_of(figure: Figure) -> dict[str, bytes]:
    """{file name: content} of the figure as PNG and of its data as CSV."""
    return {f"{figure.name}.png": _png(figure.canvas), f"{figure.name}.csv": csv_bytes(figure.data)}


def _lay_out(canvas: Canvas) -> None:
    """Runs the layout engine once: it takes longer than drawing, and all files of a figure share one layout."""
    if isinstance(engine := canvas.get_layout_engine(), ConstrainedLayoutEngine):
        engine.execute(canvas)
        canvas.set_layout_engine("none")


def save_png(canvas: Canvas, path: Path) -> None:
    """Writes a PNG without metadata, so that equal figures give equal files."""
    path.write_bytes(_png(canvas))


def _png(canvas: Canvas) -> bytes:
    buffer = io.BytesIO()
    _lay_out(canvas)
    FigureCanvasAgg(canvas).print_png(buffer, metadata={"Software": None})  # savefig would draw everything twice
    return buffer.getvalue()


def csv_bytes(rows: Cells) -> bytes:
    """A CSV file with one line per row; the columns are the keys of all rows, in the order of first use."""
    buffer = io.StringIO(newline="")
    keys = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.writer(buffer)
    writer.writerow(map(_no_formula, keys))
    writer.writerows([_no_formula(row.get(key, "")) for key in keys] for row in rows)
    return buffer.getvalue().encode()


def _no_formula(cell: Any) -> Any:
    """A text that a spreadsheet would take for a formula (=, +, -, @), with a quote before it; else the cell itself."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def data_link(name: str, content: bytes, text: str) -> str:
    """A link that saves a file whose content is inside the page, so that it goes wherever the page goes."""
    kind = {".png": "image/png", ".csv": "text/csv", ".yaml": "text/yaml"}[Path(name).suffix]
    source = f"data:{kind};base64,{base64.b64encode(content).decode()}"
    return f'<a download="{html.escape(name)}" href="{source}">{html.escape(text)}</a>'


def tag_series(artist: Artist, index: int) -> None:
    """Marks what is drawn for the index-th group of a study: the page's script can hide it."""
    artist.set_gid(f"series-{index}")


def series_of(artist: Artist) -> int | None:
    """The index that tag_series gave."""
    gid = artist.get_gid() or ""
    return int(gid.removeprefix("series-")) if gid.startswith("series-") else None


def inline_svg(figure: Figure, dark: Mapping[str, str]) -> str:
    """The figure as an <svg> element: text stays text, and colours follow light and dark mode, `dark` has the shades.

    Removes the background of the figure, so the PNG must be written before.
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
    svg = re.sub(r'<g id="(series|legend)-(\d+)">', r'<g data-\1="\2">', svg)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    svg = re.sub(r'id="([^"]+)"', rf'id="{figure.name}-\1"', svg)
    svg = re.sub(r"(href=\"|url\()#", rf"\1#{figure.name}-", svg)
    svg = re.sub(r"'DejaVu Sans'[^;\"]*", "system-ui, sans-serif", svg)
    for method, colour in COLOURS.items():
        svg = re.sub(colour, "currentColor" if colour == INK else f"var(--{method})", svg, flags=re.IGNORECASE)
    shades = "|".join(colour for colour in dark if colour in svg)
    if shades:  # the plain colour first, for browsers that do not know light-dark()
        svg = re.sub(
            f"(fill|stroke): ({shades})", lambda found: f"{found[0]}; {found[1]}: {on_page(found[2], dark)}", svg
        )
    return re.sub(r"\n\s*", "\n", svg)


def on_page(colour: str, dark: Mapping[str, str]) -> str:
    """A line's colour as CSS that follows light and dark mode; `dark` has the shades."""
    if colour == INK:
        return "currentColor"
    method = next((name for name, own in COLOURS.items() if own == colour), None)
    if method is not None:
        return f"var(--{method})"
    return f"light-dark({colour}, {dark[colour]})" if colour in dark else colour


def hover_of(canvas: Canvas, axes: Axes, series: Cells) -> dict[str, Any]:
    """What page.js needs to map a pointer to data: the axes' corners in points from the upper left, limits, scales."""
    _lay_out(canvas)
    width, height = 72 * canvas.get_size_inches()
    box = axes.get_position()
    corners = [box.x0 * width, (1 - box.y1) * height, box.x1 * width, (1 - box.y0) * height]
    scale = {"xlim": axes.get_xlim(), "ylim": axes.get_ylim(), "log": [axes.get_xscale(), axes.get_yscale()]}
    return {"box": [round(c, 1) for c in corners], **scale, "unit": axes.get_xlabel(), "series": list(series)}


def hover_json(figure: Figure, dark: Mapping[str, str]) -> str:
    """Figure.hover, with colours for the page, as JSON that is safe inside a <script> element."""
    plots = [
        plot | {"series": [line | {"color": on_page(line["color"], dark)} for line in plot["series"]]}
        for plot in figure.hover
    ]
    return json.dumps(plots, separators=(",", ":")).replace("<", "\\u003c")
