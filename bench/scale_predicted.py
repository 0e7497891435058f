"""What `llcg doctor --stages` predicted before the first stage, beside what bench.scale then measured."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from bench.harness import Claim, Spread, table
from bench.kept import Figures

WITHIN = 0.25
_JUDGED = {"time": 4.0, "memory": 2e8, "memory with files": 2e8, "disk": 2e8}
"""Seconds and bytes from which on a prediction is judged: below, a quarter is what a busy host or a missed look makes.
Mapped files are shown and judged with the rest of the memory: what is counted of the libraries of a process depends
on how many others have them mapped. Where memory does not hold them, how much of them is there at a time is the
kernel's choice, and not judged."""
_TOO_MUCH = "memory with files, more than there is"
_SEEN = 1.0
"""Seconds that a stage must take for its peak to be seen: there are a few looks a second."""
_IDLE = 0.1
"""The share of the host's cores that others may use while seconds by the clock still mean something."""
_OF_PARTITION = {
    "ingest": "ingest",
    "write the whole graph": "write the whole graph",
    "cut": "cut (stream)",
    "count cut edges": "count cut edges",
    "write the parts": "write the parts",
}
"""{stage of doctor: of bench.scale}."""
_ABOUT = """What `llcg doctor --stages` predicts, what is measured, and the ratio of both. Constants of its model were
fitted to measurements of these sizes, on one host. Up to four times the size the predictions were made again after
that, on the same files (`--predict`): there the table says how well the model describes what it was fitted to. Ten
times is a prediction: it was made first, by the fitted model, on a machine of the same kind that had just been
started, and measured after that. Of its stages all but two are within a quarter. A machine's steps take 1.4 times the
CPU time that was said: a part's rows are read from the disk again and again there. Another kind of host was not tried.
Time is by the clock where nothing else ran on the host, else in seconds of CPU; memory is anonymous, that of mapped
files apart; what stages of less than a second hold is not seen. Where memory does not hold all files, how much of them
is there at a time is shown, and not judged."""
_DISTURBED = "CPU s"
_BY_THE_CLOCK = "s"


@dataclass(frozen=True)
class Pair:
    """One number of a stage, predicted and measured."""

    what: str
    predicted: float
    measured: float
    unit: str = _BY_THE_CLOCK

    @property
    def is_judged(self) -> bool:
        return max(self.predicted, self.measured) >= _JUDGED.get(self.what, float("inf"))

    @property
    def error(self) -> float:
        """By which share of what was measured the prediction is off."""
        return abs(self.predicted / max(self.measured, 1e-9) - 1)

    def __str__(self) -> str:
        scale, digits = (1, ".1f") if self.what == "time" else (1e9, ".2f")
        unit = self.unit if self.what == "time" else "GB"
        return f"{self.predicted / scale:{digits}} / {self.measured / scale:{digits}} {unit}"


def pairs_of(found: Figures) -> dict[str, list[Pair]]:
    """{stage: its pairs} of one size; none where nothing was predicted."""
    if "predicted" not in found:
        return {}
    predicted, trained = found["predicted"]["stages"], found["train"]
    free = found["predicted"].get("free_memory", float("inf"))
    files = found["predicted"]["files"]
    pairs = {
        stage: _of_stage(predicted[stage], found["partition"][measured], free, files)
        for stage, measured in _OF_PARTITION.items()
    }
    pairs["train"] = _of_stage(predicted["train"], trained, free)
    for name, key in (("the server", "server"), ("a machine", "machine")):
        pairs[name] = list(_memory(predicted[name], trained[key], _holds(predicted["train"], free)))
    pairs["a machine"].insert(0, Pair("time", predicted["a machine"]["cpu"], trained["cpu_local"], _DISTURBED))
    pairs["an evaluation"] = [Pair("time", predicted["an evaluation"]["cpu"], trained["cpu_evaluate"], _DISTURBED)]
    pairs["predict"] = _of_stage(predicted["predict"], found["predict"], free)
    return pairs


def _holds(predicted: Figures, free: float) -> bool:
    """Whether memory holds all mapped files of a stage."""
    return bool(predicted["anonymous"] + predicted["mapped"] <= free)


def _of_stage(predicted: Figures, measured: Figures, free: float, files: int | None = None) -> list[Pair]:
    idle = measured["others"] < _IDLE * measured["seconds"] * (os.cpu_count() or 1)
    time = "seconds" if idle else "cpu"
    pairs = [Pair("time", predicted[time], measured[time], _BY_THE_CLOCK if idle else _DISTURBED)]
    if measured["seconds"] >= _SEEN:
        pairs += _memory(predicted, measured["peak"], _holds(predicted, free))
        if files is not None:
            pairs.append(Pair("disk", files + predicted["disk"], measured["disk"]))
    return pairs


def _memory(predicted: Figures, peak: Figures, holds: bool) -> Iterator[Pair]:
    yield Pair("memory", predicted["anonymous"], peak["anonymous"])
    yield Pair("mapped files", predicted["mapped"], peak["file"])
    together = "memory with files" if holds else _TOO_MUCH
    yield Pair(together, predicted["anonymous"] + predicted["mapped"], peak["total"])


def predictions_table(sizes: Figures) -> str:
    """A row for every stage and number, a column for every size."""
    by_size = {size: pairs for size, found in sizes.items() if (pairs := pairs_of(found))}
    if not by_size:
        return ""
    names = dict.fromkeys(
        (stage, pair.what) for pairs in by_size.values() for stage, found in pairs.items() for pair in found
    )
    rows = []
    for stage, what in names:
        cells = []
        for pairs in by_size.values():
            pair = next((pair for pair in pairs[stage] if pair.what == what), None)
            cells.append(f"{pair} ({pair.predicted / max(pair.measured, 1e-9):.2f})" if pair else "")
        rows.append([stage, what, *cells])
    return f"{_ABOUT}\n\n{table(['stage', 'predicted / measured', *by_size], rows)}"


def prediction_claims(sizes: Figures) -> list[Claim]:
    """For every size and stage the prediction that is off the most; none where all numbers are too small to judge."""
    claims = []
    for size, found in sizes.items():
        for stage, pairs in pairs_of(found).items():
            worst = max((pair for pair in pairs if pair.is_judged), key=lambda pair: pair.error, default=None)
            if worst is None:
                continue
            what = f"{size}, {stage}: the prediction is off by, at the worst ({worst.what})"
            claims.append(Claim(what, Spread.of([worst.error]), at_most=WITHIN))
    return claims
