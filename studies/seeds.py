"""Methods compared over seeds, each under both kinds of BatchNorm statistics; by default the demo's settings.

    python -m studies.seeds [--seeds 5] [--methods llcg ggs] [--out runs/seeds] [overrides...]

Prints the table of docs/studies/reproduce.md and writes the curves to <out>/report/curves.png. Finished runs are kept
and not repeated, so that an interrupted call can be continued.
"""

import argparse
import json
import statistics
from pathlib import Path

from llcg_dist.cli.main import run
from llcg_dist.records.console import say
from llcg_dist.report import write_report

METHODS = ("single", "full_sync", "ggs", "llcg", "subgraph_approx", "psgd_pa", "server_only")
STATISTICS = ("average", "recalibrate")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--out", type=Path, default=Path("runs/seeds"))
    arguments, overrides = parser.parse_known_args()
    if not any(override.startswith("experiment=") for override in overrides):
        overrides = ["experiment=demo", *overrides]
    table = [
        "| method | BatchNorm statistics | final val % | best val % | test % at best val | MB a round |",
        "|---|---|---|---|---|---|",
    ]
    for method in arguments.methods:
        for kind in STATISTICS:
            summaries = []
            for seed in range(arguments.seeds):
                run_dir = arguments.out / f"{method}-{kind}-{seed}"
                if not (run_dir / "summary.json").exists():
                    settings = [f"algorithm={method}", f"algorithm.batchnorm_stats={kind}", f"seed={seed}"]
                    if run(["train", *settings, f"run_dir='{run_dir}'", *overrides]) != 0:
                        raise SystemExit(f"{run_dir} failed")
                summaries.append(json.loads((run_dir / "summary.json").read_text()))
            keys = ("final_val_score", "best_val_score", "test_score_at_best_val")
            cells = [mean_std([100 * summary[key] for summary in summaries]) for key in keys]
            megabytes = statistics.mean(summary["total_bytes"] / summary["num_rounds"] / 1e6 for summary in summaries)
            table.append(f"| {method} | {kind} | {' | '.join(cells)} | {megabytes:.2f} |")
    write_report([arguments.out])
    say("\n".join(table))


def mean_std(values: list[float]) -> str:
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values) if len(values) > 1 else 0:.1f}"


if __name__ == "__main__":
    main()
