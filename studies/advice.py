"""Is `llcg advise` right? Its advice on eight graphs that played no part in its making, against a fixed grid.

    python -m studies.advice --data FOLDER [--graphs "six classes" ...] [--workers 1] [--out runs/advice]
                             [key=value ...]

The grid is trained on all (one machine with batches of B and of P x B; LLCG on three kinds of parts, with K of 8
and of 32, corrected after and beside; plain averaging), then `llcg advise` is asked, and what it advises is trained.
All are compared by the cluster time to 97 % of one machine's best validation score, P = 8, links of 1,000 Mbit/s. The
advice holds where it takes at most 1.3 times as long as the best of the grid, or says "one machine" where one machine
is the best. FOLDER is that of studies/plus.py. On loopback; finished runs and answers are kept.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

from bench.harness import put_section, table

from llcg_dist.config.compose import quoted_override
from llcg_dist.records.console import say
from studies.advice_graphs import graphs
from studies.map_tables import PAGE
from studies.pool import run_all
from studies.timed_runs import TimedRun

MACHINES, LINK_MBIT, SEED = 8, 1_000.0, 31
NEARLY, WITHIN = 0.97, 1.3
ASKED = [f"cluster.num_machines={MACHINES}", f"cluster.link_mbit={LINK_MBIT:g}", f"seed={SEED}"]
"""What the user of the advice has set."""
_QUIET = ["logger=none", "verify=sizes"]
_STEPS = 480
"""Local steps of every run of the grid on average, and so its rounds."""
_PARTS = {
    "METIS": ["partition=metis"],
    "labels": ["partition=metis", "partition.balance=labels"],
    "clusters": ["partition=clusters"],
}
_CORRECTIONS = {
    "after 4": ["algorithm.correction=after", "algorithm.S=4"],
    "fill": ["algorithm.correction=beside", "algorithm.S=fill"],
}
ONE = "one machine"
ADVISED = "advised"


def grid() -> dict[str, list[str]]:
    """{name: overrides} of what the advice is compared with; a batch of one machine is P times local_batch_size."""
    found = {
        f"{ONE}, B": ["algorithm=single", "train.local_batch_size=8", _rounds(8)],
        f"{ONE}, P x B": ["algorithm=single", _rounds(8)],
        "psgd_pa on clusters": ["algorithm=psgd_pa", "partition=clusters", _rounds(8)],
    }
    for (parts, cut), (correction, steps), local in product(_PARTS.items(), _CORRECTIONS.items(), (8, 32)):
        name = f"LLCG on {parts}, K = {local}, {correction}"
        found[name] = ["algorithm=llcg_plus", *cut, *steps, f"algorithm.K={local}", _rounds(local)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--graphs", nargs="*")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/advice"))
    arguments, overrides = parser.parse_known_args()
    chosen = {
        name: settings
        for name, settings in graphs(arguments.data, arguments.out).items()
        if not arguments.graphs or name in arguments.graphs
    }
    places = {name: arguments.out / name.replace(" ", "_").replace(",", "") for name in chosen}
    common = {
        name: [*settings, *ASKED, quoted_override("partition.root", str(places[name] / "partitions")), *overrides]
        for name, settings in chosen.items()
    }
    cells = {
        (name, cell): (places[name] / "grid" / str(number), [*common[name], *_QUIET, *of])
        for name in chosen
        for number, (cell, of) in enumerate(grid().items())
    }
    run_all(dict(cells.values()), arguments.workers)
    advice = {name: asked(places[name] / "advice.json", common[name]) for name in chosen}
    run_all(
        {
            places[name] / ADVISED: [*common[name], *_QUIET, *_settings(found), _rounds(_steps_of(found))]
            for name, found in advice.items()
        },
        arguments.workers,
    )
    rows, held = [], 0
    for name, found in advice.items():
        timed = {cell: TimedRun(folder) for (graph, cell), (folder, _) in cells.items() if graph == name}
        row, holds = judged(timed, TimedRun(places[name] / ADVISED), found)
        rows.append([name, *row])
        held += holds
    head = ["graph", "target %", "advice", "its seconds", "best of the grid", "its seconds", "ratio", "holds"]
    text = f"{table(head, rows)}\n\nThe advice holds on {held} of {len(rows)}."
    say(text)
    put_section(PAGE, "advice", text)


def judged(timed: Mapping[str, TimedRun], advised: TimedRun, advice: Mapping[str, object]) -> tuple[list[str], bool]:
    """A row of the table, and whether the advice holds."""
    target = NEARLY * max(run.best for name, run in timed.items() if name.startswith(ONE))
    seconds = {name: run.seconds_to(target, LINK_MBIT) for name, run in timed.items()}
    best = min(seconds, key=lambda name: seconds[name])
    own = advised.seconds_to(target, LINK_MBIT)
    holds = own <= WITHIN * seconds[best] or (best.startswith(ONE) and not advice["distribute"])
    cells = [f"{target:.1f}", str(advice["chosen"]), f"{own:.2f}", best, f"{seconds[best]:.2f}"]
    return [*cells, f"{own / seconds[best]:.2f}", "yes" if holds else "**no**"], holds


def asked(file: Path, settings: Sequence[str]) -> dict[str, dict[str, object]]:
    """The answer of `llcg advise`, kept in a file."""
    if not file.exists():
        command = [str(Path(sys.executable).parent / "llcg"), "advise", "--json", *settings]
        answer = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(answer)
    found: dict[str, dict[str, object]] = json.loads(file.read_text())
    return found


def _rounds(local_steps: float) -> str:
    return f"num_rounds={round(_STEPS / local_steps)}"


def _settings(advice: Mapping[str, Mapping[str, object]]) -> list[str]:
    return [f"{key}={value}" for key, value in advice["settings"].items()]


def _steps_of(advice: Mapping[str, Mapping[str, object]]) -> float:
    return float(str(advice["settings"].get("algorithm.K", 8)))


if __name__ == "__main__":
    main()
