"""Do eight machines wait for their server? In cluster time, with a core for each rank and one for the evaluator:

    python -m bench.waiting [--size 1]

- A graph of 50,000 nodes, evaluated every round: the server evaluates itself and corrects afterwards, against both
  beside the machines (evaluate.process, algorithm.correction=beside with S=fill).
- ogbn-products' size divided by `size`, with the settings of bench.scale and evaluate.every=auto: minutes.

Ranks share the cores of this host, so what is compared is CPU seconds (`cluster_seconds` of metrics.jsonl); the first
and the last round are left out: kernels are loaded in the one, and the other waits until everything is evaluated.
"""

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

from bench.harness import Claim, Spread, publish, table
from bench.jobs import cut, train
from bench.rounds import SETTINGS
from bench.scale_stages import NODES, PRODUCTS, TRAINING

EIGHT = ["cluster.num_machines=8", "algorithm=llcg", "algorithm.rho=1", "logger=none", "num_rounds=8"]
SMALL = [*SETTINGS, *EIGHT]
BESIDE = ["algorithm.correction=beside", "algorithm.S=fill", "evaluate.process=on"]
WAYS = {
    "the server evaluates and then corrects": ["algorithm.S=2", "evaluate.process=off"],
    "both beside the machines": BESIDE,
}

Rows = list[dict[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1, help="what ogbn-products' size is divided by")
    size = parser.parse_args().size
    jobs = {f"50,000 nodes: {name}": [*SMALL, *settings] for name, settings in WAYS.items()}
    large = f"{NODES // size:,} nodes, evaluate.every=auto: both beside"
    graph = [*PRODUCTS, f"dataset.nodes={NODES // size}", "partition=stream"]
    jobs[large] = [*graph, *TRAINING, *EIGHT, *BESIDE, "evaluate.every=auto"]
    found: dict[str, Rows] = {}
    with tempfile.TemporaryDirectory(prefix="llcg-bench-") as folder:
        for place, (name, settings) in enumerate(jobs.items()):
            parts = f"partition.root={folder}/parts{place}"
            cut([*settings, parts])
            found[name] = train(Path(folder, str(place)), [*settings, parts]).rows[1:-1]
    head = ["job", "local steps, s", "evaluation, s", "steps of the server", "round, s", "machines idle"]
    idle = [idle_shares(rows) for rows in found.values()]
    claims = [
        Claim("50,000 nodes: share of a round that machines are idle", Spread.of(idle[1]), at_most=0.1),
        Claim(f"{large}: a round / its local steps", Spread.of([1 / (1 - share) for share in idle[2]]), at_most=1.1),
    ]
    publish("waiting", table(head, [[name, *columns(rows)] for name, rows in found.items()]), claims)


def idle_shares(rows: Rows) -> list[float]:
    """Of every round, in cluster time: what the busiest machine does not compute in."""
    return [1 - local_seconds(row) / row["cluster_seconds"] for row in rows]


def local_seconds(row: dict[str, Any]) -> float:
    return max(row["cpu_local_by_part"])


def columns(rows: Rows) -> list[str]:
    def middle(values: list[float]) -> float:
        return statistics.median(values)

    local = middle([local_seconds(row) for row in rows])
    evaluate = middle([row["cpu_evaluate"] for row in rows if row["cpu_evaluate"]] or [0.0])
    steps, idle = middle([row["S"] for row in rows]), middle(idle_shares(rows))
    return [
        f"{local:.2f}",
        f"{evaluate:.2f}",
        f"{steps:.0f}",
        f"{middle([row['cluster_seconds'] for row in rows]):.2f}",
        f"{idle:.0%}",
    ]


if __name__ == "__main__":
    main()
