"""Colours and shapes. A method has its own everywhere, in light and in dark, told apart with any colour blindness."""

from colorsys import hls_to_rgb, rgb_to_hls
from typing import Any

from matplotlib.colors import to_hex, to_rgb

INK = "#202124"
"""Text and axes: in the page it becomes the page's own text colour."""

# Okabe and Ito's palette, with Tol's indigo and wine; a test holds the distances under each form of colour blindness.
COLOURS = {
    "single": INK,
    "full_sync": "#E69F00",
    "ggs": "#CC79A7",
    "subgraph_approx": "#56B4E9",
    "llcg": "#0072B2",
    "llcg_paper": "#332288",
    "llcg_plus": "#882255",
    "psgd_pa": "#D55E00",
    "server_only": "#009E73",
}
DARK = {
    "single": "#f1f3f4",
    "full_sync": "#ffc857",
    "ggs": "#e59ac6",
    "subgraph_approx": "#9fdcff",
    "llcg": "#2f8fdc",
    "llcg_paper": "#7a5cf0",
    "llcg_plus": "#c2407f",
    "psgd_pa": "#ff7a2e",
    "server_only": "#00b386",
}
_UNKNOWN = "#888888"
_MARKERS = dict(zip(COLOURS, "sD^vo<>XP", strict=True))
_DASHES = ["-", (0, (5, 2)), (0, (1.2, 1.6)), (0, (6, 2, 1.2, 2)), (0, (9, 3))]

PHASES = {"local": "#77AADD", "exchange": "#EE8866", "correct": "#44BB99", "evaluate": "#BBBBBB"}
KINDS = {
    "bytes_up": ("parameters up", "#77AADD"),
    "bytes_down": ("parameters down", "#33507a"),
    "gradient_bytes": ("gradients", "#EE8866"),
    "feature_bytes": ("features", "#EEDD88"),
    "control_bytes": ("control", "#BBBBBB"),
}
ROLES = {"peak_rss_mb_server": ("server", "#44BB99"), "peak_rss_mb_machine": ("largest machine", "#77AADD")}

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
    "text.parse_math": False,  # a label is a label, dollar signs and all
    "axes.unicode_minus": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "llcg",
    "legend.frameon": False,
}


def method_rank(method: str) -> int:
    """Methods stand in the same order everywhere."""
    return list(COLOURS).index(method) if method in COLOURS else len(COLOURS)


def line_style(method: str, shade: float | None = None, dash: int = 0) -> dict[str, Any]:
    """`shade` from 0 (dark) to 1 (light) and a dash tell several groups of one method apart."""
    base = COLOURS.get(method, _UNKNOWN)
    return {
        "color": base if shade is None else _shade(base, shade),
        "linestyle": _DASHES[dash % len(_DASHES)],
        "marker": _MARKERS.get(method, "*"),
        "markersize": 3.5,
        "linewidth": 1.7,
    }


def _shade(colour: str, share: float) -> str:
    hue, light, saturation = rgb_to_hls(*to_rgb(colour))
    darkest, lightest = min(light, 0.27), max(light, 0.76)
    return str(to_hex(hls_to_rgb(hue, darkest + share * (lightest - darkest), saturation)))
