"""Colours, markers and dashes. Each method has the same in all figures; colours differ under any colour blindness."""

from collections.abc import Iterable
from colorsys import hls_to_rgb, rgb_to_hls
from typing import Any

from matplotlib.colors import to_hex, to_rgb

from llcg_dist.algorithms.presentation import PRESENTATIONS

INK = "#202124"
"""Colour of text and axes; in the page it is replaced by the page's text colour."""

COLOURS = {name: method.colour for name, method in PRESENTATIONS.items()}
DARK = {name: method.dark for name, method in PRESENTATIONS.items()}
_OTHER_METHOD = "#888888"
_MARKERS = {name: method.marker for name, method in PRESENTATIONS.items()}
_DASHES = ["-", (0, (5, 2)), (0, (1.2, 1.6)), (0, (6, 2, 1.2, 2)), (0, (9, 3))]

# Colours of the phases of a round.
PHASES = {"local": "#77AADD", "exchange": "#EE8866", "correct": "#44BB99", "evaluate": "#BBBBBB"}
# {column of metrics.jsonl: (label, colour)} of what is sent.
BYTE_KINDS = {
    "bytes_up": ("parameters up", "#77AADD"),
    "bytes_down": ("parameters down", "#33507a"),
    "gradient_bytes": ("gradients", "#EE8866"),
    "feature_bytes": ("features", "#EEDD88"),
    "control_bytes": ("control", "#BBBBBB"),
}
# {column of summary.json: (label, colour)} of peak resident memory.
MEMORY_ROLES = {"peak_rss_mb_server": ("server", "#44BB99"), "peak_rss_mb_machine": ("largest machine", "#77AADD")}

# Matplotlib rcParams of all figures.
SETTINGS: Any = {
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.prop_cycle": "cycler('color', ['#888888'])",
    "text.parse_math": False,  # labels may contain dollar signs
    "axes.unicode_minus": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "llcg",
    "legend.frameon": False,
}


def method_rank(method: str) -> int:
    """The position of a method in tables and legends; unknown methods come last."""
    return list(COLOURS).index(method) if method in COLOURS else len(COLOURS)


def line_style(method: str, shade: float | None = None, dash: int = 0) -> dict[str, Any]:
    """Arguments of Axes.plot; `shade` from 0 (dark) to 1 (light) and `dash` distinguish groups of one method."""
    base = COLOURS.get(method, _OTHER_METHOD)
    return {
        "color": base if shade is None else _shade(base, shade),
        "linestyle": _DASHES[dash % len(_DASHES)],
        "marker": _MARKERS.get(method, "*"),
        "markersize": 3.5,
        "linewidth": 1.7,
    }


def shade_of(index: int, count: int) -> float | None:
    """The shade of the index-th of `count` groups of a method; None, the plain colour, if there is only one."""
    return index / (count - 1) if count > 1 else None


def dark_shades(methods: Iterable[str], most: int) -> dict[str, str]:
    """{shade on a light page: the same on a dark one} of methods with up to `most` groups."""
    shares = {shade_of(index, count) for count in range(2, most + 1) for index in range(count)}
    return {
        _shade(COLOURS.get(method, _OTHER_METHOD), share): _shade(DARK.get(method, _OTHER_METHOD), share, 0.6, 0.88)
        for method in methods
        for share in shares
        if share is not None
    }


def _shade(colour: str, share: float, darkest: float = 0.27, lightest: float = 0.76) -> str:
    """The colour with a lightness between dark (share 0) and light (share 1)."""
    hue, light, saturation = rgb_to_hls(*to_rgb(colour))
    low, high = min(light, darkest), max(light, lightest)
    red, green, blue = (min(1.0, max(0.0, value)) for value in hls_to_rgb(hue, low + share * (high - low), saturation))
    return str(to_hex((red, green, blue)))  # rounding had led out of [0, 1]
