"""The runs of studies/map.py: graphs by size and task, machines, methods, learning rates."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from llcg_dist.config.compose import quoted_override
from studies.wordnet import WORDNET
from studies.wordnet import settings as wordnet_settings

PRODUCTS = 2_449_029
"""Nodes of ogbn-products, whose degree, features and classes the generated graphs have."""
SIZES = {"1/16": PRODUCTS // 16, "1/64": PRODUCTS // 64, "1/8": PRODUCTS // 8}
TASKS: dict[str, list[str]] = {
    "plain": [],
    "clear": ["dataset.signal=0.4"],
    "noisy": ["dataset.signal=0.08", "dataset.homophily=0.3"],
    "wrong labels": ["dataset.label_noise=0.5"],
    "few classes": ["dataset.classes=8"],
    "few labels": ["dataset.train_fraction=0.05"],
}
"""What sets the noise of gradients."""
NETWORKS = (100, 1_000, 10_000)
"""Mbit/s: of bytes that were counted; no run of its own."""
ONE, ONE_LARGE = "one machine, B", "one machine, P x B"
LLCG, MOMENTUM, PLUS = "llcg", "llcg, outer momentum", "llcg_plus"
_FEW = ["algorithm=llcg_plus", "algorithm.S=1"]
"""Most of the work at the machines: this is about speed."""
_OUTER = [*_FEW, "algorithm.server_optimizer=nesterov", "algorithm.server_momentum=0.8"]
_LONG_ROUNDS = {f"outer momentum, K = {steps}": steps for steps in (32, 64)}
TOGETHER = {
    LLCG: _FEW,
    MOMENTUM: _OUTER,
    "outer momentum, METIS": [*_OUTER, "partition=metis"],
    "outer momentum, balanced": [*_OUTER, "partition=metis", "partition.balance=labels"],
    **dict.fromkeys(_LONG_ROUNDS, _OUTER),
    PLUS: ["algorithm=llcg_plus"],
    "psgd_pa": ["algorithm=psgd_pa", "partition=clusters"],
    "ggs": ["algorithm=ggs", "partition=clusters"],
    "full_sync": ["algorithm=full_sync", "partition=clusters"],
}
METHODS = (ONE, ONE_LARGE, *TOGETHER)
_COMMON = [
    "dataset.degree=50", "dataset.features=100", "dataset.classes=47", "dataset.homophily=0.4",
]  # fmt: skip
_TRAINING = [
    "logger=none", "verify=sizes", "sampling.fanout=10", "model.hidden=128", "algorithm.rho=1.0",
    "algorithm.batchnorm_stats=average",
]  # fmt: skip
_ROUNDS, LONGER = 20, 60
_STEPS = 16
"""K of all but _LONG_ROUNDS; one machine that takes small batches gets twice as many of them."""


@dataclass(frozen=True)
class Cell:
    """One run; `machines` is 1 where one machine trains alone, whose batch says how many it stands for."""

    size: str
    task: str
    method: str
    machines: int
    batch: int
    rate: float
    steps: int = _STEPS
    rounds: int = _ROUNDS

    def folder(self, out: Path) -> Path:
        run = f"P{self.machines}-B{self.batch}-K{self.steps}-lr{self.rate:g}"
        run += f"-R{self.rounds}" if self.rounds != _ROUNDS else ""
        return self.graph_folder(out) / _plain(self.method) / run

    def graph_folder(self, out: Path) -> Path:
        return out / _plain(self.size) / _plain(self.task)

    def settings(self, data: Path | None, out: Path) -> list[str]:
        method = ["algorithm=single"] if self.machines == 1 else TOGETHER[self.method]
        return [
            *_TRAINING,
            *self._graph(data),
            *method,
            f"cluster.num_machines={self.machines}",
            f"algorithm.K={self.steps}",
            f"num_rounds={self.rounds}",
            f"evaluate.every={3 if self.rounds == LONGER else 1}",
            f"train.local_batch_size={self.batch}",
            f"train.local_lr={self.rate:g}",
            f"train.server_lr={self.rate:g}",
            f"train.server_batch_size={self.batch}",
            "sampling.server_fanout=10",
            quoted_override("partition.root", str(self.graph_folder(out) / "partitions")),
        ]

    def _graph(self, data: Path | None) -> list[str]:
        if self.size == WORDNET:
            assert data is not None
            return wordnet_settings(data / WORDNET)
        return ["dataset=synthetic", *_COMMON, f"dataset.nodes={SIZES[self.size]}", *TASKS[self.task]]


def cell_of(method: str, size: str, task: str, machines: int, batch: int, rate: float) -> Cell:
    """One machine takes the batch of one or of all machines."""
    if method == ONE:
        return Cell(size, task, ONE, 1, batch, rate, 2 * _STEPS)
    if method == ONE_LARGE:
        return Cell(size, task, ONE, 1, machines * batch, rate)
    return Cell(size, task, method, machines, batch, rate, _LONG_ROUNDS.get(method, _STEPS))


def places(sizes: Sequence[str], tasks: Sequence[str], machines: Sequence[int]) -> list[tuple[str, str, int]]:
    """(size, task, P): the first of each together, then the others of each in turn."""
    size, task, count = sizes[0], tasks[0], machines[0]
    return [
        (size, task, count),
        *((other, task, count) for other in sizes[1:]),
        *((size, other, count) for other in tasks[1:]),
        *((size, task, other) for other in machines[1:]),
    ]


def _plain(name: str) -> str:
    return name.replace(" ", "_").replace(",", "").replace("/", "_of_")
