"""What bench.peers found: which settings of a peer are repeated, the table, and what is claimed."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.harness import Claim, Spread, table

OURS, THEIRS = "ours", "theirs"
KINDS = {False: (OURS,), True: (OURS, THEIRS)}
"""Batch and learning rate that a program is run with, by whether it is a peer."""
RIVALS = [
    ("llcg", "distdgl", 100, 5.0),
    ("llcg", "distdgl", 1000, 1.0),
    ("llcg", "flower", 100, None),
    ("llcg", "ddp", 100, None),
    ("psgd_pa", "flower", 100, 2.0),
    ("psgd_pa", "flower", 1000, 2.0),
]
"""Our method, the peer, Mbit/s, and how many times sooner ours should be; FedAvg is psgd_pa by another name."""


@dataclass(frozen=True)
class Result:
    """One run of one program."""

    rate: int
    repeat: int
    program: str
    settings: str
    reached: bool
    seconds: float
    """To the target; of a run that did not come so far, all that it took: a lower bound."""
    best: float
    megabytes: float
    peak_mb: float


def better_settings(results: Sequence[Result], rate: int, program: str) -> list[str]:
    """Of the first repeat: the settings that reached the target sooner, or came closer to it."""
    first = [r for r in results if (r.rate, r.program, r.repeat) == (rate, program, 0)]
    best = min(first, key=lambda r: (not r.reached, r.seconds if r.reached else -r.best))
    return [best.settings]


def markdown(results: Sequence[Result]) -> str:
    head = ["Mbit/s", "program", "settings", "runs", "seconds to the target", "MB sent", "peak MB of a host"]
    rows = []
    for rate, name, kind in dict.fromkeys((r.rate, r.program, r.settings) for r in results):
        of = [r for r in results if (r.rate, r.program, r.settings) == (rate, name, kind)]
        late = [f"{100 * r.best:.1f}" for r in of if not r.reached]
        seconds = str(Spread.of([r.seconds for r in of])) + (f", given up at {', '.join(late)} %" if late else "")
        amounts = [_whole(values) for values in ([r.megabytes for r in of], [r.peak_mb for r in of])]
        rows.append([rate, name, kind, len(of), seconds, *amounts])
    return table(head, sorted(rows, key=lambda row: row[0]))


def _whole(values: Sequence[float]) -> str:
    """The spread of large numbers, without decimals."""
    spread = Spread.of(values)
    return f"{spread.median:,.0f} ({spread.low:,.0f} to {spread.high:,.0f})"


def claims(results: Sequence[Result]) -> list[Claim]:
    """Of every repeat; a peer that did not come to the target counts with the seconds that it had spent."""
    found = []
    for method, peer, rate, bound in RIVALS:
        own = {r.repeat: r for r in results if (r.rate, r.program) == (rate, method)}
        if not own or not any((r.rate, r.program) == (rate, peer) for r in results):
            continue
        (kind,) = better_settings(results, rate, peer)
        rival = {r.repeat: r for r in results if (r.rate, r.program, r.settings) == (rate, peer, kind)}
        times = [rival[k].seconds / own[k].seconds if own[k].reached else 0.0 for k in own.keys() & rival.keys()]
        what = f"{rate} Mbit/s: {method} reaches the target so many times sooner than {peer}"
        found.append(Claim(what, Spread.of(times), at_least=bound))
    return found
