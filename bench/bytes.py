"""Bytes a round of every method, counted by the ledger at the paper's model size and fan-out.

    python -m bench.bytes [--rounds 2] [overrides...]

Reddit's numbers where bytes come from: 602 features, 41 classes, 3-layer SAGE with BatchNorm (SBSBS), hidden 256,
fan-out 10, batches of 256, 8 machines; K = 8 keeps it short (Reddit has 64: features and gradients grow with it). The
graph is generated, smaller than Reddit (20,000 nodes, mean degree 50) and cut by METIS; remote rows a step depend on
it. Runs on loopback, whose ledger is that of real processes (a test holds it).
"""

import argparse
import json
import tempfile
from pathlib import Path

from llcg_dist.cli.main import run
from llcg_dist.records.console import say

KINDS = ("parameters", "gradients", "features", "control")
METHODS = ("psgd_pa", "llcg", "subgraph_approx", "ggs", "full_sync")
SETTINGS = [
    "dataset.nodes=20000", "dataset.features=602", "dataset.classes=41", "dataset.degree=50", "model.hidden=256",
    "model.layers=3", "train.local_batch_size=256", "sampling.server_fanout=10", "algorithm.K=8",
    "cluster.num_machines=8", "cluster.backend=loopback", "evaluate.every=0", "checkpoint.every=0",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1)
    arguments, overrides = parser.parse_known_args()
    table = [
        "| method | parameters | gradients | features | control | MB a round | times psgd_pa |",
        "|---|" + "---|" * 6,
    ]
    with tempfile.TemporaryDirectory(prefix="llcg-bench-") as folder:
        first = 0.0
        for method in METHODS:
            run_dir = Path(folder, method)
            places = [f"run_dir={run_dir}", f"partition.root={folder}/parts", f"num_rounds={arguments.rounds}"]
            if run(["train", *SETTINGS, f"algorithm={method}", *places, *overrides]) != 0:
                raise SystemExit(f"{method} failed")
            kinds = json.loads((run_dir / "wire.json").read_text())["bytes_by_kind"]
            cells = [
                kinds[kind] / arguments.rounds / 1e6 for kind in ("parameters", "gradients", "features", "control")
            ]
            first = first or sum(cells)
            shown = " | ".join(f"{cell:,.2f}" for cell in (*cells, sum(cells)))
            table.append(f"| {method} | {shown} | {sum(cells) / first:,.1f} |")
    say("\n".join(table))


if __name__ == "__main__":
    main()
