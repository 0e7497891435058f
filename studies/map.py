"""When do several machines pay? Cluster time to 97 % of one machine's best score, by size, task, P, network, method.

    python -m studies.map --data FOLDER [--sizes 1/16 1/64 1/8 wordnet] [--tasks plain noisy ...]
                          [--machines 8 2 16] [--methods llcg psgd_pa ...] [--rates 1e-2 2e-2] [--batch 256]
                          [--workers 1] [--out runs/map] [--publish [SECTION]] [key=value ...]

The first size, task and P together, then the others of each in turn; 20 rounds, and 60 of what --longer names where 20
do not reach the target. Generated graphs have the degree, features and classes of ogbn-products and the given share of
its nodes; FOLDER holds wordnet/ (studies/wordnet.py). Every method has the same learning rates to choose from, and one
machine batches of B and of P x B: the best of each is compared. Times are cluster time (records/cluster_time.py) of CPU
seconds that were measured; networks are bytes that were counted over links of so many Mbit/s. Beside the times stands
what the gradient noise scale predicts. On loopback; finished runs are kept (studies/pool.py). key=value go to all runs.
"""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from bench.harness import put_section

from llcg_dist.advise.measure import cut, noise
from llcg_dist.config.compose import load_config
from llcg_dist.records.console import say
from studies.map_grid import (
    LONGER,
    METHODS,
    MOMENTUM,
    ONE,
    ONE_LARGE,
    PLUS,
    SIZES,
    TASKS,
    TOGETHER,
    WORDNET,
    Cell,
    cell_of,
    places,
)
from studies.map_tables import PAGE, Place, markdown
from studies.pool import run_all
from studies.timed_runs import TimedRun

NOISE_FILE = "noise.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sizes", nargs="*", choices=[*SIZES, WORDNET], default=[*SIZES, WORDNET])
    parser.add_argument("--tasks", nargs="*", choices=TASKS, default=list(TASKS))
    parser.add_argument("--machines", type=int, nargs="*", default=[8, 2, 16])
    parser.add_argument("--methods", nargs="*", choices=list(TOGETHER), default=list(TOGETHER))
    parser.add_argument(
        "--longer", nargs="*", choices=list(TOGETHER), default=[MOMENTUM, PLUS], help="of which 60 rounds are tried"
    )
    parser.add_argument("--rates", type=float, nargs="*", default=[1e-2, 2e-2])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/map"))
    parser.add_argument("--publish", nargs="?", const="map", help="put the table into this section of the page (map)")
    arguments, overrides = parser.parse_known_args()
    methods = [method for method in METHODS if method in (ONE, ONE_LARGE, *arguments.methods)]
    found = list[Place]()
    for size, task, machines in places(arguments.sizes, arguments.tasks, arguments.machines):
        cells = {
            method: [cell_of(method, size, task, machines, arguments.batch, rate) for rate in arguments.rates]
            for method in methods
        }
        place = measured(cells, machines, arguments, overrides)
        longer = {
            method: [*cells[method], replace(cells[method][0], rounds=LONGER)]
            for method in arguments.longer
            if method in cells and math.isinf(place.seconds(method, math.inf))
        }
        found.append(measured(cells | longer, machines, arguments, overrides) if longer else place)
        (arguments.out / "map.md").write_text(markdown(found))
    say(markdown(found))
    if arguments.publish:
        put_section(PAGE, arguments.publish, markdown(found))


def measured(
    cells: Mapping[str, Sequence[Cell]], machines: int, arguments: argparse.Namespace, overrides: Sequence[str]
) -> Place:
    """Trains what was not trained yet."""
    one, out = cells[ONE][0], arguments.out
    runs = {cell.folder(out): [*cell.settings(arguments.data, out), *overrides] for of in cells.values() for cell in of}
    run_all(runs, arguments.workers)
    timed = {method: [TimedRun(cell.folder(out)) for cell in of] for method, of in cells.items()}
    scales = noise_scales(cells[ONE], arguments.data, out, overrides)
    return Place(one.size, one.task, machines, one.batch, timed, *scales)


def noise_scales(cells: Sequence[Cell], data: Path | None, out: Path, overrides: Sequence[str]) -> tuple[float, float]:
    """The gradient noise scale in examples at the start, and at the best model of one machine; kept beside its run."""
    best = max(cells, key=lambda cell: TimedRun(cell.folder(out)).best)
    file = best.folder(out) / NOISE_FILE
    if not file.exists():
        config = load_config([*best.settings(data, out), *overrides])
        graph = cut(config).graph
        state = torch.load(best.folder(out) / "best.pt", weights_only=True)
        file.write_text(json.dumps([noise(config, graph, None), noise(config, graph, state)]))
    start, after = json.loads(file.read_text())
    return start, after


if __name__ == "__main__":
    main()
