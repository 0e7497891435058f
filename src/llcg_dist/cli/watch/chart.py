"""A curve as text: a column of block characters for each round, scaled between the lowest and the highest value."""

from collections.abc import Sequence

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def chart(values: Sequence[float], width: int, height: int) -> list[str]:
    """`height` lines of at most `width` characters, the first one on top; rounds are merged where there are more."""
    if not values:
        return []
    columns = _columns(values, width)
    low, high = min(columns), max(columns)
    span = high - low or 1.0
    eighths = [1 + round((8 * height - 1) * (value - low) / span) for value in columns]
    return [
        "".join(_EIGHTHS[max(0, min(8, level - 8 * line))] for level in eighths) for line in reversed(range(height))
    ]


def _columns(values: Sequence[float], width: int) -> list[float]:
    """At most `width` values: the last of each stretch of rounds."""
    if len(values) <= width:
        return list(values)
    return [values[(i + 1) * len(values) // width - 1] for i in range(width)]


def bar(share: float, width: int) -> str:
    """A bar of up to `width` characters for a share in 0..1."""
    return "█" * max(0, min(width, round(share * width)))
