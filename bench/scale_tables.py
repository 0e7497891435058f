"""What bench.scale found, as tables with growth exponents, and what is claimed of it."""

import math
from collections.abc import Callable
from fractions import Fraction

from bench.harness import Claim, Spread, table
from bench.kept import Figures
from bench.scale_predicted import prediction_claims, predictions_table
from bench.scale_stages import IN_ALL, PARTS, PHASES, STAGES, TRAINING

OF_SHARES = Fraction(1, 4)
"""The size that is cut into several numbers of parts."""
_METIS = "cut (METIS), beside"


def text_of(figures: Figures) -> str:
    sizes, shares = by_size(figures), figures["shares"]
    texts = [_stages_table(sizes), _cuts_table(sizes), _training_table(sizes)]
    texts += filter(None, [predictions_table(sizes)])
    return "\n\n".join([*texts, *([_shares_table(shares, figures["bare"])] if len(shares) > 1 else [])])


def claims_of(figures: Figures) -> list[Claim]:
    sizes = by_size(figures)
    claims = prediction_claims(sizes)
    if "1" in sizes:
        claims += _claims_at_products_size(sizes["1"])
    if "10" in sizes:
        claims += _claims_at_ten_times(sizes["10"])
    shares, bare = figures["shares"], figures["bare"]
    if len(shares) > 1:
        few, many = min(shares, key=int), max(shares, key=int)
        times = _beyond(shares[few], bare[few]) / _beyond(shares[many], bare[many])
        parts = int(many) / int(few)
        what = f"what a machine holds beyond a bare rank, P={few} over P={many} (parts: {parts:g})"
        claims.append(Claim(what, Spread.of([times]), at_least=0.75 * parts))
    return claims


def by_size(figures: Figures) -> Figures:
    """{size: figures}, the smallest first."""
    return dict(sorted(figures["sizes"].items(), key=lambda item: Fraction(item[0])))


def growth(nodes: list[int], values: list[float]) -> float:
    """The exponent a of value ~ nodes^a between the two largest sizes."""
    return math.log(values[-1] / values[-2]) / math.log(nodes[-1] / nodes[-2])


def _claims_at_products_size(found: Figures) -> list[Claim]:
    cut, metis = found["partition"]["cut (stream)"], found["metis"]
    claims = [_at_most("partition=stream at 1, all its processes, GB", cut["peak"]["total"] / 1e9, 1.5)]
    if metis:
        edges = found["partition"]["cut_edges"] / metis["cut_edges"]
        claims.append(_at_most("cut edges at 1, stream over METIS", edges, 1.25))
        claims.append(_at_most("seconds to cut at 1, stream over METIS", cut["seconds"] / metis["seconds"], 1))
    trained = found["train"]
    claims.append(_at_most("training at 1, all ranks and the launcher, GB", trained["peak"]["total"] / 1e9, 10))
    return [*claims, _at_most("a machine's share at 1, GB", trained["machine"]["total"] / 1e9, 1)]


def _claims_at_ten_times(found: Figures) -> list[Claim]:
    stages = [found["partition"][IN_ALL], found["train"], found["predict"]]
    highest = {key: max(stage["peak"][key] for stage in stages) / 1e9 for key in ("total", "anonymous")}
    return [
        _at_most("10: the most memory of any stage, GB", highest["total"], 14),
        _at_most("10: of it anonymous, GB", highest["anonymous"], 8),
        _at_most("10: a machine's share, GB", found["train"]["machine"]["total"] / 1e9, 1.5),
        _at_most("10: disk, with the user's own files, GB", max(stage["disk"] for stage in stages) / 1e9, 50),
    ]


def _at_most(what: str, value: float, most: float) -> Claim:
    return Claim(what, Spread.of([value]), at_most=most)


def _beyond(run: Figures, bare: Figures) -> float:
    return float(run["machine"]["total"] - bare["machine"]["total"])


def _gigabytes(peak: Figures) -> str:
    return f"{peak['total'] / 1e9:.2f} ({peak['anonymous'] / 1e9:.2f})"


def _by_size(first: str, sizes: Figures, rows: dict[str, list[str]]) -> str:
    named = [" ".join([f"{size}: {found['nodes']:,} nodes", *found["store"]]) for size, found in sizes.items()]
    grows = ["grows like N^"] if len(sizes) > 1 else []
    return table([first, *named, *grows], [[name, *cells] for name, cells in rows.items()])


def _row(sizes: Figures, values: list[float], text: Callable[[float], str]) -> list[str]:
    """A cell for every size, and how the values grow."""
    nodes = [found["nodes"] for found in sizes.values()]
    known = len(values) > 1 and min(values[-2:]) > 0
    grows = [f"{growth(nodes, values):.2f}" if known else ""] if len(values) > 1 else []
    return [*map(text, values), *grows]


def _stage_row(sizes: Figures, costs: list[Figures]) -> list[str]:
    """Seconds and memory for every size, and how the two grow."""
    cells = [f"{cost['seconds']:.1f} s, {_gigabytes(cost['peak'])} GB" if cost else "" for cost in costs]
    if len(sizes) < 2:
        return cells
    nodes = [found["nodes"] for found, cost in zip(sizes.values(), costs, strict=True) if cost]
    measured = [cost for cost in costs if cost]
    if len(measured) < 2:
        return [*cells, ""]
    seconds = growth(nodes, [cost["seconds"] for cost in measured])
    memory = growth(nodes, [cost["peak"]["total"] for cost in measured])
    return [*cells, f"{seconds:.2f}, {memory:.2f}"]


def _stages_table(sizes: Figures) -> str:
    parted = [found["partition"] for found in sizes.values()]
    rows = {name: _stage_row(sizes, [costs[name] for costs in parted]) for name in ("start", *STAGES.values(), IN_ALL)}
    rows[_METIS] = _stage_row(sizes, [found["metis"] for found in sizes.values()])
    rows["`llcg predict`"] = _stage_row(sizes, [found["predict"] for found in sizes.values()])
    disk = [
        max(found[stage][IN_ALL]["disk"] if stage == "partition" else found[stage]["disk"] for stage in _ON_DISK) / 1e9
        for found in sizes.values()
    ]
    rows["disk, with the user's own files"] = _row(sizes, disk, lambda value: f"{value:.1f} GB")
    about = f"`llcg partition partition=stream` from .npy files into {PARTS} parts, METIS on the same graph beside it, \
and `llcg predict`: seconds, and peak memory of all processes as the sum of PSS (of which anonymous: the rest is \
mapped files, which the kernel can take back). Exponents are those between the two \
largest sizes, of time and of memory."
    return f"{about}\n\n{_by_size('stage', sizes, rows)}"


_ON_DISK = ("partition", "train", "predict")


def _cuts_table(sizes: Figures) -> str:
    rows = []
    for size, found in sizes.items():
        parted, metis = found["partition"], found["metis"]
        shares = [100 * cut / parted["num_edges"] for cut in (parted["cut_edges"], metis.get("cut_edges", 0))]
        ratio = f"{parted['cut_edges'] / metis['cut_edges']:.3f}" if metis else ""
        rows.append([size, f"{shares[0]:.2f}", f"{shares[1]:.2f}" if metis else "not enough memory", ratio])
    return table(["size", "cut edges, stream, %", "cut edges, METIS, %", "stream over METIS"], rows)


def _training_table(sizes: Figures) -> str:
    trained = [found["train"] for found in sizes.values()]
    memory = {"all ranks and the launcher": "peak", "the server": "server", "the largest machine": "machine"}
    rows = {}
    for what, key in memory.items():
        totals = [run[key]["total"] / 1e9 for run in trained]
        grows = _row(sizes, totals, str)[len(trained) :]
        rows[f"{what}, GB"] = [*(_gigabytes(run[key]) for run in trained), *grows]
    numbers = {
        "… its peak RSS, with the libraries that all ranks share, GB": [run["machine_rss"] / 1e9 for run in trained],
        "its part on disk, GB": [run["part_bytes"] / 1e9 for run in trained],
        "the whole job, s": [run["seconds"] for run in trained],
        **{what: [run[key] for run in trained] for key, what in PHASES.items()},
    }
    rows |= {what: _row(sizes, values, lambda value: f"{value:.3g}") for what, values in numbers.items()}
    about = f"`llcg train {' '.join(TRAINING)}`: 1 + {PARTS} ranks, the default model."
    return f"{about}\n\n{_by_size('peak memory, time', sizes, rows)}"


def _shares_table(shares: Figures, bare: Figures) -> str:
    rows = [
        [
            machines,
            f"{run['part_bytes'] / 1e6:.0f}",
            f"{run['machine']['total'] / 1e6:.0f} ({run['machine']['anonymous'] / 1e6:.0f})",
            f"{bare[machines]['machine']['total'] / 1e6:.0f}",
            f"{_beyond(run, bare[machines]) / 1e6:.0f}",
        ]
        for machines, run in sorted(shares.items(), key=lambda item: int(item[0]))
    ]
    about = f"The graph of {OF_SHARES} on P machines. A bare rank is one of the same job on a graph of 2,000 nodes:\
 Python, torch and PyG, whose libraries all ranks share."
    head = ["P", "largest part on disk, MB", "largest machine, MB (anonymous)", "a bare rank, MB", "beyond it, MB"]
    return f"{about}\n\n{table(head, rows)}"
