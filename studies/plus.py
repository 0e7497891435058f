"""Which settings make llcg_plus as good as one machine? One factor at a time around a base, then the judgement.

    python -m studies.plus --data FOLDER [--graphs cora wordnet ...] [--factors parts correction mixing ema end server]
                           [--base parts=labels "correction=beside 8" ...] [--machines 8 16] [--seeds 2] [--workers 2]
                           [--out runs/plus] [--judge] [--publish] [key=value ...]

Without --judge: the base and every level of the chosen factors alone on top of it, on the tuning seeds, with `single`
as the measure; a second call with another --base takes the few that help together, and repeats no run that it shares
with the first. With --judge: `algorithm=llcg_plus` as its preset has it, against its rivals, on judging seeds that the
tuning never sees: freeze the preset in a commit first. FOLDER holds Amazon/, Planetoid/ and Hetero/ as PyG's classes
expect them, and wordnet/ (studies/wordnet.py). On loopback; finished runs are kept (studies/pool.py). key=value go to
all runs.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bench.harness import put_section

from llcg_dist.records.console import say
from studies.accuracy import PAGE
from studies.plus_grid import (
    ALONE,
    FACTORS,
    FILL,
    GRAPHS,
    JUDGING_SEEDS,
    PLUS,
    SINGLE,
    SINGLE_SETTINGS,
    TUNING_SEEDS,
    Cell,
    cells,
    contenders,
    fair_rivals,
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
    parser.add_argument("--publish", action="store_true", help="put the table into docs/studies/accuracy.md")
    arguments, overrides = parser.parse_known_args()
    seeds = (JUDGING_SEEDS if arguments.judge else TUNING_SEEDS)[: arguments.seeds or (5 if arguments.judge else 2)]
    grid = (arguments.graphs, arguments.machines)
    study = Study(arguments.data, arguments.out, arguments.workers, overrides)
    if arguments.judge:
        results = study.run(cells(*grid, contenders(), seeds), "judge")
        rivals = [cell for place, named in results.items() for cell in rivals_of(place, named, seeds)]
        for place, named in study.run(rivals, "judge").items():
            results[place] |= named
        of_machines = "" if arguments.machines == [8] else "_" + "_".join(map(str, arguments.machines))
        text, section = judgement(results), f"plus{of_machines}"
    else:
        base = parse_base(arguments.base)
        tried = {**variants(base, arguments.factors), SINGLE: SINGLE_SETTINGS}
        folders = {name: variant_folder(name, base) for name in tried if name != SINGLE}
        text, section = tuning_table(study.run(cells(*grid, tried, seeds), "tune", folders)), "plus_tuning"
    say(text)
    if arguments.publish:
        put_section(PAGE, section, text)


def rivals_of(
    place: tuple[str, int], named: Mapping[str, Mapping[int, TimedRun]], seeds: Iterable[int]
) -> Iterator[Cell]:
    """The server alone, seed by seed: how many steps fit beside the machines depends on how fast they were."""
    graph, machines = place
    for seed in seeds:
        own, alone, fill = (named[name][seed] for name in (PLUS, ALONE[PLUS], FILL))
        times_longer = float(own.clock()[-1] / alone.clock()[-1])
        yield from cells([graph], [machines], fair_rivals(fill.correction_steps, times_longer), [seed])


@dataclass(frozen=True)
class Study:
    data: Path | None
    out: Path
    workers: int
    overrides: list[str]

    def run(self, planned: Iterable[Cell], part: str, folders: Mapping[str, str] | None = None) -> Results:
        """Trains what has not been yet. `folders`: of variants that are not called by their own name on disk.

        The preset may change between two judgements: what it is is in the folder's config.yaml, and a run of another
        is refused there."""
        run_cells = list(planned)
        renamed = [replace(cell, variant=(folders or {}).get(cell.variant, cell.variant)) for cell in run_cells]
        places = [cell.folder(self.out / part) for cell in renamed]
        settings = [[*cell.settings(self.data, self.out), *self.overrides] for cell in run_cells]
        run_all(dict(zip(places, settings, strict=True)), self.workers)
        results: Results = {}
        for cell, place in zip(run_cells, places, strict=True):
            by_variant = results.setdefault((cell.graph, cell.machines), {})
            by_variant.setdefault(cell.variant, {})[cell.seed] = TimedRun(place)
        return results


if __name__ == "__main__":
    main()
