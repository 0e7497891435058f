"""The runs behind docs/studies/accuracy.md: which method on which graph with which settings, and in which order."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GRAPHS = {
    "computers": ["dataset=amazon", "dataset.name=Computers"],
    "cora": ["dataset=planetoid", "dataset.name=Cora"],
    "tolokers": ["dataset=heterophilous", "dataset.name=Tolokers", "dataset.split=0"],
    "homophily 0.3": ["dataset=synthetic", "dataset.homophily=0.3"],
    "homophily 0.5": ["dataset=synthetic", "dataset.homophily=0.5"],
    "homophily 0.7": ["dataset=synthetic", "dataset.homophily=0.7"],
}
FOLDERS = {"computers": "Amazon", "cora": "Planetoid", "tolokers": "Hetero"}
REAL = tuple(FOLDERS)
FOUR = (*REAL, "homophily 0.5")
"""The graphs of the ablation and of the axes."""

FIRST_SEED = 10
"""The ingredients were chosen on seeds 0 and 1: none of these had a say in it."""

COMMON = [
    "cluster.backend=loopback", "cluster.num_machines=8", "checkpoint.every=0", "num_rounds=25", "algorithm.K=8",
    "train.local_lr=3e-3", "train.server_lr=3e-3", "sampling.fanout=5", "logger=none", "verify=sizes",
    "algorithm.batchnorm_stats=recalibrate", "evaluate.both_statistics=true",
]  # fmt: skip
"""The same on every graph: nothing is tuned for one of them. One training is scored with both kinds of statistics, so
`llcg` is llcg_paper too, and what is called `average` below is what a run with that setting records."""

FOUR_STEPS = ["algorithm=llcg", "algorithm.S=4"]
"""What llcg_plus was when the studies with these settings ran: on METIS parts, over all neighbours. COMMON says which
BatchNorm statistics."""

METHODS: dict[str, list[str]] = {
    "single": [],
    "server_only": [],
    "server_only S=4": ["algorithm.S=4"],
    "psgd_pa": [],
    "ggs": [],
    "full_sync": [],
    "llcg": [],
    "llcg_plus": [],
}


def _chosen(method: str) -> list[str]:
    return FOUR_STEPS if method == "llcg_plus" else [f"algorithm={method}"]


INGREDIENTS = {
    "calibrated": ["train.local_loss=calibrated"],
    "cosine in steps": ["train.lr_schedule=cosine", "train.lr_unit=steps"],
    "warm-up": ["train.lr_schedule=warmup"],
    "momentum 0.5": ["algorithm.server_optimizer=momentum", "algorithm.server_momentum=0.5"],
    "adam": ["algorithm.server_optimizer=adam"],
    "train_nodes": ["algorithm.averaging=train_nodes"],
    "reset": ["train.optimizer_state=reset"],
}
"""Each alone on top of llcg, and on top of llcg_plus, which is llcg with S=4."""
TOGETHER = ("calibrated", "cosine in steps", "momentum 0.5", "train_nodes")
"""Those that do not exclude each other: all at once on top of llcg_plus."""

LAST = "full_sync"
"""Of the core's methods the one that comes after all seeds of the others: dear, and no claim hangs on it."""

AXES = {
    "random parts": ["partition=random"],
    "P=4": ["cluster.num_machines=4"],
    "P=16": ["cluster.num_machines=16"],
    "rho=1": ["algorithm.rho=1.0"],
    "K=2": ["algorithm.K=2"],
    "K=16": ["algorithm.K=16"],
}
AXIS_METHODS = ("single", "psgd_pa", "llcg", "llcg_plus")
UNTOUCHED = {"random parts": ("single",), "rho=1": ("single", "psgd_pa")}
"""Methods that an axis leaves as they are in the core: they have no parts, or their rho is 1 already."""

MORE = {
    "llcg_plus S=8": ["algorithm=llcg", "algorithm.S=8"],
    "llcg_plus, 50 rounds": [*_chosen("llcg_plus"), "num_rounds=50"],
}
"""What it would take to come closer to single."""

PARTS = {"core": tuple(GRAPHS), "more": REAL, "ablation": FOUR, "axes": FOUR}
"""The graphs of each part, most important part first."""

SPOT = [("cora", "llcg_plus"), ("homophily 0.5", "llcg_plus"), ("tolokers", "psgd_pa")]
"""Cells of the core that are also run over real processes."""


@dataclass(frozen=True)
class Job:
    part: str
    graph: str
    method: str
    seed: int
    settings: list[str]

    def folder(self, out: Path) -> Path:
        return out / self.part / _plain(self.graph) / _plain(self.method) / str(self.seed)

    def partitions(self, out: Path) -> Path:
        """A synthetic graph's store is named after its generator alone: one folder for each graph."""
        return out / "partitions" / _plain(self.graph)


def _plain(name: str) -> str:
    return name.replace(" ", "_")


def all_jobs(data: Path | None, seeds: int, fewer_seeds: int) -> list[Job]:
    """Part by part and seed by seed, so that a sweep that was stopped early has what matters most."""
    jobs = list(_jobs(data, seeds, fewer_seeds))
    return sorted(jobs, key=lambda job: ([*PARTS].index(job.part), job.method == LAST))


def _jobs(data: Path | None, seeds: int, fewer_seeds: int) -> Iterator[Job]:
    for part, graphs in PARTS.items():
        for seed in range(FIRST_SEED, FIRST_SEED + (seeds if part == "core" else fewer_seeds)):
            for graph in graphs:
                root = [f"dataset.root='{data / FOLDERS[graph]}'"] if data and graph in FOLDERS else []
                for method, overrides in variants(part):
                    settings = [*COMMON, *GRAPHS[graph], *root, *overrides, f"seed={seed}"]
                    yield Job(part, graph, method, seed, settings)


def variants(part: str) -> Iterator[tuple[str, list[str]]]:
    """(name, settings) of each method of a part."""
    if part == "core":
        for method, settings in METHODS.items():
            yield method, [*_chosen(method.split()[0]), *settings]
    if part == "more":
        yield from MORE.items()
    if part == "ablation":
        for name, settings in INGREDIENTS.items():
            for base in ("llcg", "llcg_plus"):
                yield f"{base} + {name}", [*_chosen(base), *settings]
        together = [setting for name in TOGETHER for setting in INGREDIENTS[name]]
        yield "llcg_plus + all of these", [*_chosen("llcg_plus"), *together]
    if part == "axes":
        for axis, settings in AXES.items():
            for method in AXIS_METHODS:
                if method not in UNTOUCHED.get(axis, ()):
                    yield f"{axis}, {method}", [*_chosen(method), *settings]
