"""S=auto against fixed S, over seeds and two ways to cut: the table of docs/diagnostics.md.

    python -m bench.auto_s --data FOLDER [--seeds 3] [--out runs/auto_s] [--cells synthetic-metis,...] [--S 0,1,auto]
                            [overrides...]

FOLDER/Amazon holds Amazon-Computers as PyG's class expects it. All on loopback, which has the bits of real processes.
Finished runs are kept and not repeated, so that an interrupted call can be continued.
"""

import argparse
import json
import statistics
from pathlib import Path

from llcg_dist.cli.console import say
from llcg_dist.config import load_config
from llcg_dist.process import Rank
from llcg_dist.train import run

FIXED = ("0", "1", "2", "4", "8")
COMPUTERS = ["experiment=real/computers_sage", "algorithm=llcg", "cluster.num_machines=8", "num_rounds=25"]
COMPUTERS += ["algorithm.K=8", "train.local_batch_size=64", "train.local_lr=3e-3", "train.server_lr=3e-3"]
CELLS = {
    f"{graph}-{parts}": [*settings, f"partition={parts}"]
    for graph, settings in (("synthetic", []), ("computers", COMPUTERS))
    for parts in ("metis", "random")
}
CLOSE = 0.5
"""Points of validation score that count as equal."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/auto_s"))
    parser.add_argument("--cells", type=lambda text: text.split(","), default=list(CELLS))
    parser.add_argument("--S", type=lambda text: text.split(","), default=[*FIXED, "auto"])
    arguments, overrides = parser.parse_known_args()
    table = [f"| graph, parts | {' | '.join(f'S={s}' for s in arguments.S)} | S* | mean S of auto |"]
    table.append("|---" * (len(arguments.S) + 3) + "|")
    for cell in arguments.cells:
        rows = {
            s: [one_run(arguments, cell, s, seed, overrides) for seed in range(arguments.seeds)] for s in arguments.S
        }
        table.append(line(cell, rows))
        say(table[-1])
    say("\n".join(table))


def one_run(arguments: argparse.Namespace, cell: str, s: str, seed: int, overrides: list[str]) -> list[dict]:
    """The rows of metrics.jsonl."""
    run_dir = arguments.out / f"{cell}-S{s}-{seed}"
    if not (run_dir / "summary.json").exists():
        settings = [
            *CELLS[cell],
            f"algorithm.S={s}",
            f"seed={seed}",
            f"run_dir='{run_dir}'",
            "cluster.backend=loopback",
        ]
        if cell.startswith("computers"):
            settings.append(f"dataset.root='{arguments.data / 'Amazon'}'")
        run(load_config([*settings, "checkpoint.every=0", *overrides]), Rank())
    return [json.loads(text) for text in (run_dir / "metrics.jsonl").read_text().splitlines()]


def line(cell: str, rows: dict[str, list[list[dict]]]) -> str:
    finals = {s: [100 * run[-1]["val_score"] for run in runs] for s, runs in rows.items()}
    means = {s: statistics.mean(values) for s, values in finals.items()}
    cells = [f"{means[s]:.1f} ± {statistics.stdev(v) if len(v) > 1 else 0:.1f}" for s, v in finals.items()]
    fixed = {int(s): mean for s, mean in means.items() if s != "auto"}
    close = [s for s, mean in fixed.items() if mean >= max(fixed.values()) - CLOSE]
    chosen = [row["S"] for run in rows.get("auto", []) for row in run]
    mean_s = f"{statistics.mean(chosen):.2f}" if chosen else ""
    return f"| {cell} | {' | '.join(cells)} | {min(close, default='')} | {mean_s} |"


if __name__ == "__main__":
    main()
