"""The answer of `llcg advise` in plain words."""

from llcg_dist.advise.answer import NETWORKS, Answer
from llcg_dist.advise.decision import Curve
from llcg_dist.records.console import table


def in_words(answer: Answer) -> str:
    """The advice, why, what to expect, the candidates in a table, and the command."""
    chosen = answer.chosen
    head = "One machine is enough here" if chosen.alone else "Several machines pay here"
    low, high = (100 * score for score in chosen.score_range)
    command = " ".join(f"{key}={value}" for key, value in answer.settings.items())
    lines = [
        f"{head}: {chosen.name}.",
        *(f"- {reason}" for reason in answer.reasons),
        f"- A longer run may be expected to end between {low:.1f} and {high:.1f} % on the validation nodes.",
        "",
        table(_HEAD, [_row(curve, answer) for curve in answer.curves]),
        "",
        f"llcg train [your settings] {command}",
    ]
    return "\n".join(lines)


_HEAD = [
    "candidate",
    "s to target",
    "rounds",
    "best %",
    *(f"s a round, {rate:,} Mbit/s" for rate in NETWORKS),
    "MB a round",
]


def _row(curve: Curve, answer: Answer) -> list[str]:
    found = answer.candidate(curve)
    return [
        curve.name,
        _number(found["seconds_to_target"]),
        _number(found["rounds_to_target"]),
        f"{100 * curve.best:.1f}",
        *(_number(seconds) for seconds in found["seconds_a_round_at_mbit"].values()),
        f"{curve.round_bytes / 1e6:.2f}",
    ]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
