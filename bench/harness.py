"""What every part of `make bench` shares: contenders take turns, claims are ratios, figures land in one place.

A part (`bench/local_step.py`, …) times its contenders with `interleaved`, states what it claims as `Claim`s, and hands
both to `publish`: into bench/results.json, and into the section of docs/studies/performance.md between the markers

    <!-- bench:NAME -->
    <!-- /bench:NAME -->

so that no figure there is typed by hand.
"""

import json
import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from llcg_dist.data.atomic_files import write_bytes, write_json
from llcg_dist.records.console import say

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parent.parent / "docs" / "studies" / "performance.md"


@dataclass(frozen=True)
class Spread:
    """Median, lowest and highest of several measurements."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        return f"{self.median:.3g} ({self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True)
class Claim:
    """A ratio that the docs state, and the bound that it should keep; exactly one of `at_least`, `at_most`, or none."""

    what: str
    found: Spread
    at_least: float | None = None
    at_most: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the median keeps the bound: one slow repeat on a busy machine decides nothing."""
        above = self.at_least is None or self.found.median >= self.at_least
        return above and (self.at_most is None or self.found.median <= self.at_most)

    def row(self) -> str:
        bound = f"≥ {self.at_least:g}" if self.at_least is not None else ""
        bound = f"≤ {self.at_most:g}" if self.at_most is not None else bound
        return f"| {self.what} | {self.found} | {bound} | {('yes' if self.holds else '**no**') if bound else ''} |"


def interleaved(
    contenders: Mapping[str, Callable[[], Any]],
    repeats: int,
    warm_up: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of each contender, repeat by repeat: all take a turn before any takes the next, so that a slow moment of
    the machine falls on all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for repeat in range(warm_up + repeats):
        for name, contender in contenders.items():
            started = clock()
            contender()
            if repeat >= warm_up:
                seconds[name].append(clock() - started)
    return seconds


def ratio(above: Sequence[float], below: Sequence[float]) -> Spread:
    """The ratio of two contenders' seconds, turn by turn."""
    return Spread.of([a / b for a, b in zip(above, below, strict=True)])


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def claims_table(claims: Sequence[Claim]) -> str:
    head = "| claim | median (lowest to highest) | asked | holds |\n|---|---|---|---|\n"
    return head + "\n".join(claim.row() for claim in claims)


def publish(part: str, text: str, claims: Sequence[Claim], figures: Mapping[str, Any] | None = None) -> None:
    """Shows the part's text and claims, and puts them where people read them."""
    text = "\n\n".join(filter(None, [text, claims_table(claims) if claims else ""]))
    say(text)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    found = [asdict(claim) | {"holds": claim.holds} for claim in claims]
    results[part] = {"machine": _machine(), "claims": found, "figures": dict(figures or {})}
    write_json(RESULTS, dict(sorted(results.items())))
    put_section(PAGE, part, text)


def put_section(page: Path, part: str, text: str) -> None:
    """Writes `text` between the markers of `part` in a page of the docs."""
    section = re.compile(rf"(<!-- bench:{re.escape(part)} -->\n).*?(<!-- /bench:{re.escape(part)} -->)", re.DOTALL)
    before = page.read_text()
    if not section.search(before):
        raise SystemExit(f"{page.name} has no section <!-- bench:{part} -->")
    write_bytes(page, section.sub(lambda found: f"{found[1]}{text}\n{found[2]}", before).encode())


def _machine() -> dict[str, Any]:
    import torch

    return {"cores": os.cpu_count(), "python": platform.python_version(), "torch": torch.__version__}
