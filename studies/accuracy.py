"""The evidence of docs/studies/accuracy.md: every method and every ingredient of llcg_plus, on six graphs, over seeds.

    python -m studies.accuracy --data FOLDER [--seeds 5] [--fewer-seeds 3] [--workers 2] [--out runs/accuracy]
                             [--graphs cora tolokers ...] [--part core|more|ablation|axes ...] [--spot | --publish]

FOLDER holds Planetoid/, Hetero/ and Amazon/ as PyG's classes expect them; without it only synthetic graphs are run.
Runs are on loopback, which has the bits of real processes: --spot runs a few of them over processes and compares.
Finished runs are kept and not repeated, so an interrupted call can be continued; <out>/tables.md is written from those
there are, and --publish puts them into docs/studies/accuracy.md instead of training. Grid: studies/accuracy_grid.py.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.harness import put_section

from llcg_dist.config.compose import quoted_override
from llcg_dist.records.console import say
from studies.accuracy_grid import FOLDERS, GRAPHS, PARTS, SPOT, Job, all_jobs
from studies.accuracy_runs import Runs
from studies.accuracy_tables import tables
from studies.pool import run_all

PAGE = Path(__file__).parent.parent / "docs" / "studies" / "accuracy.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--fewer-seeds", type=int, default=3, help="of all parts but the core")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/accuracy"))
    parser.add_argument("--graphs", nargs="*", choices=[*GRAPHS], default=[*GRAPHS])
    parser.add_argument("--part", nargs="*", choices=[*PARTS], default=[*PARTS])
    parser.add_argument("--spot", action="store_true", help="compare a few cells with real processes")
    parser.add_argument("--publish", action="store_true", help="write docs/studies/accuracy.md from the runs there are")
    arguments = parser.parse_args()
    graphs = [graph for graph in arguments.graphs if arguments.data or graph not in FOLDERS]
    jobs = [
        job
        for job in all_jobs(arguments.data, arguments.seeds, arguments.fewer_seeds)
        if job.graph in graphs and job.part in arguments.part
    ]
    if arguments.publish:
        put_section(PAGE, "accuracy", tables(Runs(arguments.out)))
        return
    if arguments.spot:
        compare_with_processes(jobs, arguments.out)
        return
    run_all(runs(jobs, arguments.out), arguments.workers)
    text = tables(Runs(arguments.out))
    (arguments.out / "tables.md").write_text(text)
    say(text)


def runs(jobs: Sequence[Job], out: Path) -> dict[Path, list[str]]:
    """Run directory -> overrides."""
    return {
        job.folder(out): [*job.settings, quoted_override("partition.root", str(job.partitions(out)))] for job in jobs
    }


def compare_with_processes(jobs: Sequence[Job], out: Path) -> None:
    """The cells of SPOT, first seed: the model, the scores of every round and the bytes, to the last bit."""
    for graph, method in SPOT:
        job = next((job for job in jobs if (job.part, job.graph, job.method) == ("core", graph, method)), None)
        if job is None:
            continue
        [(alone, settings)] = runs([job], out).items()
        run_all({alone: settings}, workers=1)
        processes = out / "processes" / alone.relative_to(out)
        if not (processes / "summary.json").exists():
            over_processes = [*settings, "cluster.backend=gloo", quoted_override("run_dir", str(processes))]
            subprocess.run([Path(sys.executable).with_name("llcg"), "train", *over_processes], check=True)
        same = {
            "model": _bytes(alone, "model.pt") == _bytes(processes, "model.pt"),
            "scores": _columns(alone, "score") == _columns(processes, "score"),
            "bytes": _columns(alone, "bytes") == _columns(processes, "bytes"),
        }
        say(f"{graph}, {method}, seed {job.seed}: {same}")
        if not all(same.values()):
            sys.exit(1)


def _bytes(folder: Path, name: str) -> bytes:
    return (folder / name).read_bytes()


def _columns(folder: Path, part_of_name: str) -> list[dict[str, float]]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if part_of_name in key} for row in rows]


if __name__ == "__main__":
    main()
