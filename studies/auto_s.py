"""S=auto against fixed S, over seeds and two ways to cut: the table of docs/studies/diagnostics.md.

    python -m studies.auto_s --data FOLDER [--seeds 0 1 2] [--cells synthetic-metis ...] [--S 0 1 auto] [--workers 2]
                            [--out runs/auto_s] [--publish] [overrides...]

FOLDER/Amazon holds Amazon-Computers as PyG's class expects it. The rule was developed on other seeds than the table's.
An interrupted call can be continued; <out>/table.md has the table, and --publish puts it into the page.
"""

import argparse
import json
import statistics
from pathlib import Path

from bench.harness import put_section, table

from llcg_dist.records.console import say
from studies.accuracy_tables import difference, mean_std
from studies.pool import run_all

FIXED = ("0", "1", "2", "4", "8")
COMPUTERS = ["experiment=real/computers_sage", "algorithm=llcg", "cluster.num_machines=8", "num_rounds=25"]
COMPUTERS += ["algorithm.K=8", "train.local_batch_size=64", "train.local_lr=3e-3", "train.server_lr=3e-3"]
CELLS = {
    f"{graph}-{parts}": [*settings, f"partition={parts}"]
    for graph, settings in (("synthetic", []), ("computers", COMPUTERS))
    for parts in ("metis", "random")
}
QUIET = ["logger=none", "evaluate.every=1000"]
"""The last model is evaluated in any case; no other score is read here."""
PAGE = Path(__file__).parent.parent / "docs" / "studies" / "diagnostics.md"
CLOSE = 0.5
"""Points of validation score that count as equal."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--cells", nargs="+", choices=[*CELLS], default=[*CELLS])
    parser.add_argument("--S", nargs="+", default=[*FIXED, "auto"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/auto_s"))
    parser.add_argument("--publish", action="store_true", help="write docs/studies/diagnostics.md too")
    arguments, overrides = parser.parse_known_args()
    root = {"computers": [f"dataset.root='{arguments.data / 'Amazon'}'"]}
    common = [*QUIET, f"partition.root='{arguments.out / 'partitions'}'", *overrides]
    runs = {
        folder(arguments.out, cell, s, seed): [
            *CELLS[cell], *root.get(cell.split("-")[0], []), f"algorithm.S={s}", f"seed={seed}", *common
        ]
        for seed in arguments.seeds
        for cell in arguments.cells
        for s in arguments.S
    }  # fmt: skip
    run_all(runs, arguments.workers)
    head = ["graph, parts", *(f"S={s}" for s in arguments.S), "auto − best fixed", "S*", "mean S of auto", "allowed"]
    head.append("a choice, in steps")
    lines = [
        line(cell, {s: {seed: folder(arguments.out, cell, s, seed) for seed in arguments.seeds} for s in arguments.S})
        for cell in arguments.cells
    ]
    text = table(head, lines)
    (arguments.out / "table.md").write_text(text + "\n")
    say(text)
    if arguments.publish:
        put_section(PAGE, "auto_s", text)


def folder(out: Path, cell: str, s: str, seed: int) -> Path:
    return out / f"{cell}-S{s}-{seed}"


def line(cell: str, runs: dict[str, dict[int, Path]]) -> list[str]:
    curves = {s: {seed: rows(run) for seed, run in of_s.items()} for s, of_s in runs.items()}
    finals = {s: {seed: 100 * rows[-1]["val_score"] for seed, rows in of_s.items()} for s, of_s in curves.items()}
    means = {int(s): statistics.mean(of_s.values()) for s, of_s in finals.items() if s != "auto"}
    scores = [mean_std(list(of_s.values())) for of_s in finals.values()]
    if "auto" not in finals or not means:
        return [cell, *scores, *[""] * 5]
    best = max(means, key=lambda s: means[s])
    smallest = min(s for s, mean in means.items() if mean >= means[best] - CLOSE)
    auto = [row for rows in curves["auto"].values() for row in rows]
    mean_s = statistics.mean(row["S"] for row in auto)
    choice = sum(row["seconds_auto_s"] for row in auto) / len(auto)
    step = sum(row["seconds_correct"] - row["seconds_auto_s"] for row in auto) / sum(row["S"] for row in auto)
    apart = difference(finals["auto"], finals[str(best)])
    return [cell, *scores, apart, str(smallest), f"{mean_s:.2f}", f"{1.5 * smallest + 0.5:g}", f"{choice / step:.1f}"]


def rows(run: Path) -> list[dict]:
    return [json.loads(text) for text in (run / "metrics.jsonl").read_text().splitlines()]


if __name__ == "__main__":
    main()
