"""Which settings make llcg_plus as good as one machine? One factor at a time around a base, then the judgement.

    python -m studies.plus --data FOLDER [--graphs cora wordnet ...] [--factors parts correction mixing ema end server]
                           [--base parts=labels "correction=beside 8" ...] [--machines 8 16] [--seeds 2] [--workers 2]
                           [--out runs/plus] [--judge] [key=value ...]

Without --judge: the base and every level of the chosen factors alone on top of it, on the tuning seeds, with `single`
as the measure; a second call with another --base takes the few that help together, and repeats no run that it shares
with the first. With --judge: `algorithm=llcg_plus` as its preset has it, against its rivals, on judging seeds that the
tuning never sees: freeze the preset in a commit first. FOLDER holds Amazon/, Planetoid/ and Hetero/ as PyG's classes
expect them, and wordnet/ (studies/wordnet.py). On loopback; finished runs are kept (studies/pool.py). key=value go to
all runs.
"""

import argparse
from pathlib import Path

from llcg_dist.records.console import say
from studies.plus_grid import (
    FACTORS,
    GRAPHS,
    JUDGING_SEEDS,
    PLUS,
    RIVALS,
    TUNING_SEEDS,
    Cell,
    cells,
    parse_base,
    variant_folder,
    variants,
)
from studies.plus_tables import Results, judgement, tuning_table
from studies.pool import run_all
from studies.timed_runs import TimedRun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--graphs", nargs="*", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--factors", nargs="*", choices=FACTORS, default=list(FACTORS))
    parser.add_argument("--base", nargs="*", default=[])
    parser.add_argument("--machines", type=int, nargs="*", default=[8])
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/plus"))
    parser.add_argument("--judge", action="store_true")
    arguments, overrides = parser.parse_known_args()
    seeds = (JUDGING_SEEDS if arguments.judge else TUNING_SEEDS)[: arguments.seeds or (5 if arguments.judge else 2)]
    if arguments.judge:
        folders = {name: name for name in (PLUS, *RIVALS)}
        named = {PLUS: [f"algorithm={PLUS}"], **RIVALS}
    else:
        base = parse_base(arguments.base)
        named = {**variants(base, arguments.factors), "single": RIVALS["single"]}
        folders = {name: name if name == "single" else variant_folder(name, base) for name in named}
    run_cells = list(cells(arguments.graphs, arguments.machines, named, seeds))
    places = {cell: _place(cell, folders, arguments.out, arguments.judge) for cell in run_cells}
    settings = {places[cell]: [*cell.settings(arguments.data, arguments.out), *overrides] for cell in run_cells}
    run_all(settings, arguments.workers)
    results: Results = {}
    for cell, place in places.items():
        results.setdefault((cell.graph, cell.machines), {}).setdefault(cell.variant, {})[cell.seed] = TimedRun(place)
    text = judgement(results) if arguments.judge else tuning_table(results)
    (arguments.out / ("judgement.md" if arguments.judge else "tuning.md")).write_text(text)
    say(text)


def _place(cell: Cell, folders: dict[str, str], out: Path, judging: bool) -> Path:
    """Frozen presets may change between two judgements: what they are is in the folder's config.yaml, and a run of
    another is refused there."""
    named = Cell(cell.graph, cell.machines, folders[cell.variant], cell.seed, cell.overrides)
    return named.folder(out / ("judge" if judging else "tune"))


if __name__ == "__main__":
    main()
