"""What does one machine of eight that is five times slower cost, and what do a deadline or balanced steps give back?

    python -m studies.stragglers --data FOLDER [--seeds 5] [--workers 2] [--out runs/stragglers] [--graphs NAME ...]

The settings of studies/accuracy.py. On loopback, where machines take turns: which rounds end without the slow machine
follows from its speed (`late_rows`, a cluster.script), and the time of a round from the CPU seconds of its parts, those
of the slow machine times five (`round_seconds`). FOLDER holds Amazon/. Finished runs are kept (studies/pool.py).
"""

import argparse
import json
import statistics
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from bench.harness import Claim, Spread, publish, table

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config, quoted_override
from studies.accuracy_grid import COMMON, FIRST_SEED, FOLDERS, FOUR_STEPS, GRAPHS
from studies.losses import final_score
from studies.pool import run_all
from studies.real_graphs import mean_std

MACHINES, TIMES_SLOWER, DEADLINE, SHARE = 8, 5.0, 1.5, 0.95
SINGLE, WAITS = "single", "all are waited for"
GOES_ON = ["cluster.on_loss=go_on", f"cluster.deadline={DEADLINE}"]
WAYS = {
    SINGLE: ["algorithm=single"],
    WAITS: FOUR_STEPS,
    "deadline, damp": [*FOUR_STEPS, *GOES_ON],
    "deadline, drop": [*FOUR_STEPS, *GOES_ON, "cluster.late=drop"],
    "deadline, damp, no stand-in": [*FOUR_STEPS, *GOES_ON, "cluster.stand_in=false"],
    "balance_speed": [*FOUR_STEPS, "algorithm.balance_speed=true"],
}
CLAIMED = "deadline, damp"

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/stragglers"))
    parser.add_argument("--graphs", nargs="*", choices=GRAPHS, default=["computers", "homophily 0.5"])
    arguments = parser.parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
    cells = {
        (graph, way, seed): arguments.out / f"{graph}/{way}/{seed}".replace(" ", "_").replace(",", "")
        for seed in seeds
        for graph in arguments.graphs
        for way in WAYS
    }
    runs = {folder: settings(arguments, *cell) for cell, folder in cells.items()}
    run_all(runs, arguments.workers)
    text, claims = [], list[Claim]()
    for graph in arguments.graphs:
        of = {way: [cells[graph, way, seed] for seed in seeds] for way in WAYS}
        rows, found = graph_rows(graph, of, seeds)
        text += rows
        claims += found
    head = ["graph", "way", f"s to {SHARE:.0%} of single", "times sooner", "test % at the end", "cost"]
    publish("stragglers", table(head, text), claims)


def graph_rows(graph: str, runs: dict[str, list[Path]], seeds: Sequence[int]) -> tuple[list[list[str]], list[Claim]]:
    """Rows of the table, and what is claimed: `runs` of each way, by seed."""
    targets = [SHARE * max(scores(folder)) for folder in runs[SINGLE]]
    slow = [slow_part(seed) for seed in seeds]
    seconds = {
        way: [seconds_to(read(folder), target, part) for folder, target, part in zip(of, targets, slow, strict=True)]
        for way, of in runs.items()
        if way != SINGLE
    }
    ends = {way: [final_score(folder) for folder in of] for way, of in runs.items()}
    rows, claims = [[graph, SINGLE, "", "", mean_std(ends[SINGLE]), ""]], list[Claim]()
    for way, of in seconds.items():
        sooner = [a / b if a and b else 0.0 for a, b in zip(seconds[WAITS], of, strict=True)]
        cost = [a - b for a, b in zip(ends[WAITS], ends[way], strict=True)]
        shown = f"{statistics.median(found):.2f}" if (found := [s for s in of if s]) else "never"
        rows.append([graph, way, shown, str(Spread.of(sooner)), mean_std(ends[way]), mean_std(cost)])
        if way == CLAIMED:
            what = f"{graph}: {way}: {SHARE:.0%} of single's score so many times sooner"
            claims.append(Claim(what, Spread.of(sooner), at_least=2))
            mean = Spread.of([statistics.fmean(cost)])
            claims.append(Claim(f"{graph}: {way}: points of test score lost at the end", mean, at_most=0.5))
    return rows, claims


def settings(arguments: argparse.Namespace, graph: str, way: str, seed: int) -> list[str]:
    data, out, rounds = arguments.data, arguments.out, arguments.rounds
    root = [quoted_override("dataset.root", str(data / FOLDERS[graph]))] if graph in FOLDERS else []
    parts = quoted_override("partition.root", str(out / "partitions" / graph.replace(" ", "_")))
    own = [
        *COMMON,
        "evaluate.both_statistics=false",
        f"num_rounds={rounds}",
        *GRAPHS[graph],
        *root,
        *WAYS[way],
        f"seed={seed}",
        parts,
    ]
    if "cluster.on_loss=go_on" in own:
        steps = build_algorithm(load_config(own)).local_steps()
        own += [quoted_override("cluster.script", str(script(out, steps, seed)))]
    if "algorithm.balance_speed=true" in own:
        speeds = [1 / TIMES_SLOWER if part == slow_part(seed) else 1.0 for part in range(MACHINES)]
        own += [f"algorithm.speeds={speeds}"]
    return own


def slow_part(seed: int) -> int:
    """Another one with every seed."""
    return seed % MACHINES


def script(out: Path, steps: Sequence[int], seed: int) -> Path:
    path = out / "scripts" / f"{len(steps)}-{seed}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in late_rows(steps, slow_part(seed))))
    return path


def late_rows(steps: Sequence[int], slow: int, times: float = TIMES_SLOWER, deadline: float = DEADLINE) -> list[Row]:
    """What a run records where the machine of part `slow` takes `times` as long for a step as the others, and rounds
    end at the deadline; the first has none. Correction takes no time: that is when the slow machine would catch up."""
    rows, now, done, since = list[Row](), 0.0, 0.0, 0
    for round_, number in enumerate(steps, start=1):
        row: Row = {"round": round_}
        if since and done <= now:
            row["answered_late"], since = {str(slow): since}, 0
        takes = float(number)
        if not since and round_ == 1:
            takes = times * number
        elif not since and times > deadline:
            since, done, takes = round_, now + times * number, deadline * number
        if since:
            row["late"] = {str(slow): since}
        now += takes
        rows.append(row)
    return rows


def round_seconds(row: Row, slow: int, times: float = TIMES_SLOWER, deadline: float = DEADLINE) -> float:
    """A round with a core for each rank and one for the process that evaluates, where the machine of part `slow` takes
    `times` the CPU seconds that its steps took here."""
    local = {part: seconds for part, seconds in enumerate(row["cpu_local_by_part"]) if seconds is not None}
    machines = max(seconds * (times if part == slow else 1.0) for part, seconds in local.items())
    if row["round"] in row.get("late", {}).values():
        machines = max(machines, deadline * statistics.median_low(local.values()))
    return max(machines, row.get("cpu_stand_in", 0.0)) + row["cpu_correct"]


def seconds_to(rows: Sequence[Row], target: float, slow: int) -> float | None:
    """Until the first model that is good enough; None: there is none."""
    ends = accumulate(round_seconds(row, slow) for row in rows)
    return next((end for end, row in zip(ends, rows, strict=True) if (row["val_score"] or 0.0) >= target), None)


def scores(folder: Path) -> list[float]:
    return [row["val_score"] for row in read(folder) if row["val_score"] is not None]


def read(folder: Path) -> list[Row]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


if __name__ == "__main__":
    main()
