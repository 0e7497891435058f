"""What a machine that lies does to the model, what of it is noticed, and what each defence costs when nobody lies:

    python -m studies.poisoning --data FOLDER [--seeds 5] [--attacked-seeds 1] [--workers 2] [--out runs/poisoning]

llcg on five machines, of which part 1 lies from round 3 on (studies/liars.py), on the synthetic graph and on Cora
(FOLDER/Planetoid). All on loopback, which has the bits of real processes. Finished runs are kept (studies/pool.py).
The tables land in docs/studies/security.md.
"""

import argparse
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness import put_section, table

from llcg_dist.config.compose import quoted_override
from llcg_dist.records.console import say
from studies.liars import HONEST, LIES, STALE
from studies.pool import ENDED_FILE, run_all
from studies.real_graphs import mean_std

PAGE = Path(__file__).parent.parent / "docs" / "studies" / "security.md"
MACHINES, LIAR = 5, 1
COMMON = [
    "algorithm=own", "algorithm.target=studies.liars.LyingLlcg", f"algorithm.options.part={LIAR}", "algorithm.K=8",
    "algorithm.rho=1.1", "algorithm.S=1", "algorithm.batchnorm_stats=recalibrate", "algorithm.trim=0.2",
    f"cluster.num_machines={MACHINES}", "num_rounds=15", "evaluate.every=5", "sampling.fanout=5", "logger=none",
    "verify=sizes",
]  # fmt: skip
GRAPHS = {
    "synthetic": ["dataset=synthetic", "dataset.nodes=3000", "model.hidden=32"],
    "Cora": ["dataset=planetoid", "dataset.name=Cora", "model.hidden=32"],
}
DEFENCES = {
    "screen=off": ["algorithm.screen=off"],
    "screen=warn (default)": [],
    "screen=clip": ["algorithm.screen=clip"],
    "screen=refuse": ["algorithm.screen=refuse"],
    "aggregate=median": ["algorithm.aggregate=median"],
    "aggregate=trimmed_mean": ["algorithm.aggregate=trimmed_mean"],
    "refuse, trimmed_mean": ["algorithm.screen=refuse", "algorithm.aggregate=trimmed_mean"],
}
LIED = (*LIES, STALE)


@dataclass(frozen=True)
class Cell:
    graph: str
    defence: str
    lie: str
    seed: int

    def folder(self, out: Path) -> Path:
        words = (self.graph, self.defence, self.lie, str(self.seed))
        return out / "-".join("".join(c if c.isalnum() else "_" for c in word) for word in words)

    def settings(self, data: Path, out: Path) -> list[str]:
        root = [quoted_override("dataset.root", str(data / "Planetoid"))] if self.graph == "Cora" else []
        return [
            *COMMON, *GRAPHS[self.graph], *root, *DEFENCES[self.defence], f"algorithm.options.lie='{self.lie}'",
            f"seed={self.seed}", quoted_override("partition.root", str(out / "partitions")),
        ]  # fmt: skip


def cells(seeds: int, attacked_seeds: int) -> Iterator[Cell]:
    for graph in GRAPHS:
        for defence in DEFENCES:
            yield from (Cell(graph, defence, HONEST, seed) for seed in range(seeds))
            yield from (Cell(graph, defence, lie, seed) for lie in LIED for seed in range(attacked_seeds))


@dataclass(frozen=True)
class Outcome:
    """What became of a run."""

    score: float | None
    """Final test score in per cent; None where the run ended early."""
    screened: list[int]
    """Parts that were named as screened or skipped, over all rounds."""
    ended: str | None
    model: str
    """Hash of the model's file."""

    @classmethod
    def of(cls, folder: Path) -> "Outcome":
        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        screened = [part for row in rows for part in row["skipped_parts"]]
        screened += [entry["part"] for row in rows for entry in row.get("screened", [])]
        if (folder / ENDED_FILE).exists():
            return cls(None, screened, json.loads((folder / ENDED_FILE).read_text())["message"], "")
        summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
        model = hashlib.sha256((folder / "model.pt").read_bytes()).hexdigest()
        return cls(100 * (summary["final_test_score"] or 0.0), screened, None, model)

    @property
    def names_liar(self) -> bool:
        return LIAR in self.screened or f"(part {LIAR})" in (self.ended or "")

    @property
    def text(self) -> str:
        what = f"{self.score:.1f}" if self.score is not None else "ends"
        return f"**{what}**" if self.names_liar else what


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--attacked-seeds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/poisoning"))
    arguments = parser.parse_args()
    wanted = list(cells(arguments.seeds, arguments.attacked_seeds))
    out, data = arguments.out, arguments.data
    run_all({cell.folder(out): cell.settings(data, out) for cell in wanted}, arguments.workers, may_end=True)
    found = {cell: Outcome.of(cell.folder(out)) for cell in wanted}
    text = "\n\n".join([attacked_table(found), honest_table(found)])
    say(text)
    put_section(PAGE, "poisoning", text)


def attacked_table(found: dict[Cell, Outcome]) -> str:
    """A row for each graph and defence, a column for each lie."""
    rows = []
    for graph in GRAPHS:
        for defence in DEFENCES:
            of_row = {lie: _outcomes(found, graph, defence, lie) for lie in (HONEST, *LIED)}
            honest = mean_std([outcome.score or 0.0 for outcome in of_row.pop(HONEST)])
            rows.append(
                [graph, f"`{defence}`", honest, *(" / ".join(o.text for o in each) for each in of_row.values())]
            )
    return table(["graph", "defence", "nobody lies", *LIED], rows)


def honest_table(found: dict[Cell, Outcome]) -> str:
    """What each defence costs when nobody lies, seed by seed against no defence at all."""
    rows = []
    for graph in GRAPHS:
        plain = _outcomes(found, graph, next(iter(DEFENCES)), HONEST)
        for defence in DEFENCES:
            own = _outcomes(found, graph, defence, HONEST)
            cost = mean_std([(a.score or 0.0) - (b.score or 0.0) for a, b in zip(own, plain, strict=True)])
            same = sum(a.model == b.model for a, b in zip(own, plain, strict=True))
            alarms = sum(len(outcome.screened) for outcome in own)
            rows.append([graph, f"`{defence}`", cost, f"{same} of {len(own)}", alarms])
    head = ["graph", "defence", "points of test score less `screen=off`", "same bits", "updates screened"]
    return table(head, rows)


def _outcomes(found: dict[Cell, Outcome], graph: str, defence: str, lie: str) -> Sequence[Outcome]:
    key = (graph, defence, lie)
    return [outcome for cell, outcome in found.items() if (cell.graph, cell.defence, cell.lie) == key]


if __name__ == "__main__":
    main()
