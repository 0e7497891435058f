"""Three real graphs on one machine, over seeds: the table of docs/studies/reproduce.md.

    python -m studies.real_graphs --data FOLDER [--seeds 5] [--out runs/real_graphs] [overrides...]

FOLDER holds Planetoid/, Hetero/ and Amazon/ as PyG's classes expect them. Finished runs are kept and not repeated.
"""

import argparse
import json
import statistics
from pathlib import Path

from llcg_dist.cli.main import run

FOLDERS = {"cora_gcn": "Planetoid", "tolokers_sage": "Hetero", "computers_sage": "Amazon"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("runs/real_graphs"))
    arguments, overrides = parser.parse_known_args()
    rows = []
    for experiment, folder in FOLDERS.items():
        summaries = []
        for seed in range(arguments.seeds):
            run_dir = arguments.out / f"{experiment}-{seed}"
            if not (run_dir / "summary.json").exists():
                root = arguments.data / folder
                settings = [f"experiment=real/{experiment}", f"dataset.root='{root}'", f"seed={seed}"]
                if run(["train", *settings, f"run_dir='{run_dir}'", *overrides]) != 0:
                    raise SystemExit(f"{run_dir} failed")
            summaries.append(json.loads((run_dir / "summary.json").read_text()))
        rows.append([f"`experiment=real/{experiment}`", summaries[0]["metric"], *scores(summaries)])
    print("\n| settings | metric | best val % | test % at best val | final test % | worst test % at best val |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def scores(summaries: list[dict[str, float]]) -> list[str]:
    keys = ("best_val_score", "test_score_at_best_val", "final_test_score")
    worst = min(summary["test_score_at_best_val"] for summary in summaries)
    return [*(mean_std([100 * summary[key] for summary in summaries]) for key in keys), f"{100 * worst:.2f}"]


def mean_std(values: list[float]) -> str:
    return f"{statistics.mean(values):.2f} ± {statistics.stdev(values) if len(values) > 1 else 0:.2f}"


if __name__ == "__main__":
    main()
