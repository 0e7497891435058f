"""The runs of studies/plus.py: graphs, the factors of llcg_plus with their levels, its rivals, and seeds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from llcg_dist.config.compose import load_config, quoted_override
from studies.accuracy_grid import COMMON, FOLDERS
from studies.accuracy_grid import GRAPHS as SMALL_GRAPHS
from studies.wordnet import WORDNET
from studies.wordnet import settings as wordnet_settings

GRAPHS = (*SMALL_GRAPHS, WORDNET)
REAL = (*FOLDERS, WORDNET)
TUNING_SEEDS = range(0, 5)
JUDGING_SEEDS = range(100, 105)
"""None of them has a say in what llcg_plus is."""

_STATISTICS = ("algorithm.batchnorm_stats=", "evaluate.both_statistics=")
SETTINGS = [setting for setting in COMMON if not setting.startswith(_STATISTICS)]
"""Of studies/accuracy.py, but every method has the statistics of its preset."""
_BESIDE = ["algorithm.correction=beside"]

FACTORS: dict[str, dict[str, list[str]]] = {
    "parts": {
        "metis": ["partition=metis"],
        "labels": ["partition=metis", "partition.balance=labels"],
        "clusters": ["partition=clusters"],
    },
    "correction": {
        "after 4": ["algorithm.S=4"],
        "after 8": ["algorithm.S=8"],
        "after 16": ["algorithm.S=16"],
        "beside 8": [*_BESIDE, "algorithm.S=8"],
        "beside fill": [*_BESIDE, "algorithm.S=fill"],
        "beside 8, weight 0.3": [*_BESIDE, "algorithm.S=8", "algorithm.server_weight=0.3"],
        "beside 8, weight 0.7": [*_BESIDE, "algorithm.S=8", "algorithm.server_weight=0.7"],
        "beside 16": [*_BESIDE, "algorithm.S=16"],
    },
    "mixing": {"mean": [], "learned": ["algorithm.aggregate=learned"]},
    "ema": {"none": [], "0.5": ["evaluate.ema=0.5"], "0.8": ["evaluate.ema=0.8"]},
    "end": {
        "constant": ["train.lr_schedule=constant"],
        "cosine 0.25": ["train.lr_schedule=cosine_end", "train.lr_end=0.25"],
        "cosine 0.5": ["train.lr_schedule=cosine_end", "train.lr_end=0.5"],
    },
    "server": {
        "all neighbours": ["sampling.server_fanout=-1"],
        "fan-out 20": ["sampling.server_fanout=20"],
        "fan-out 10": ["sampling.server_fanout=10"],
    },
}
"""The first level of each is what llcg_plus was before the study."""

PLUS, AT_4, FILL, BEFORE = "llcg_plus", "llcg_plus, S=4", "llcg_plus, fill", "llcg_plus before"
SINGLE = "single"
ALONE_AS_LONG = "server_only, as long"
ALONE = {PLUS: "server_only", AT_4: "server_only, S=4", FILL: "server_only, S of fill"}
"""What the server does without machines, with as many steps a round and as many neighbours."""
_ROUNDS = 25
SINGLE_SETTINGS = ["algorithm=single"]


def contenders() -> dict[str, list[str]]:
    """{name: overrides} of the judgement: llcg_plus as its preset has it, and its rivals. With how many steps and
    rounds some of them are fair is known only when these have run: see `fair_rivals`."""
    return {
        PLUS: [f"algorithm={PLUS}"],
        BEFORE: _overrides(parse_base([])),
        SINGLE: SINGLE_SETTINGS,
        ALONE[PLUS]: _alone(),
        AT_4: [f"algorithm={PLUS}", "algorithm.S=4"],
        ALONE[AT_4]: [*_alone(), "algorithm.S=4"],
        FILL: [f"algorithm={PLUS}", *_BESIDE, "algorithm.S=fill"],
        "psgd_pa": ["algorithm=psgd_pa"],
        "ggs": ["algorithm=ggs"],
        "llcg_paper": ["algorithm=llcg_paper"],
    }


def fair_rivals(fill_steps: float, times_longer: float) -> dict[str, list[str]]:
    """The server alone, with as many steps a round as S=fill took, and for as long as llcg_plus took."""
    rounds = max(1, round(times_longer * _ROUNDS))
    return {
        ALONE[FILL]: [*_alone(), f"algorithm.S={max(1, round(fill_steps))}"],
        ALONE_AS_LONG: [*_alone(), f"num_rounds={rounds}"],
    }


def _alone() -> list[str]:
    """The server without machines, in all else as in llcg_plus."""
    plus = load_config([f"algorithm={PLUS}"])
    return [
        "algorithm=server_only",
        f"algorithm.S={plus.algorithm.S}",
        f"sampling.server_fanout={plus.sampling.server_fanout}",
        f"train.lr_schedule={plus.train.lr_schedule}",
        f"algorithm.batchnorm_stats={plus.algorithm.batchnorm_stats}",
    ]


@dataclass(frozen=True)
class Cell:
    """One run: on a graph with so many machines, a named variant, a seed."""

    graph: str
    machines: int
    variant: str
    seed: int
    overrides: tuple[str, ...]

    def folder(self, out: Path) -> Path:
        return out / _plain(self.graph) / f"P{self.machines}" / _plain(self.variant) / str(self.seed)

    def settings(self, data: Path | None, out: Path) -> list[str]:
        """All overrides of the run."""
        parts = quoted_override("partition.root", str(out / "partitions" / _plain(self.graph)))
        own = [f"cluster.num_machines={self.machines}", f"seed={self.seed}", parts]
        return [*SETTINGS, *_graph_settings(self.graph, data), *self.overrides, *own]


def parse_base(given: Sequence[str]) -> dict[str, str]:
    """factor=level of the base that the factors are varied around; by default the first level of each."""
    base = {factor: next(iter(levels)) for factor, levels in FACTORS.items()}
    for pair in given:
        factor, _, level = pair.partition("=")
        if level not in FACTORS.get(factor, {}):
            levels = "; ".join(f"{name}: {', '.join(of)}" for name, of in FACTORS.items())
            raise SystemExit(f"--base {pair}: not a factor with such a level ({levels})")
        base[factor] = level
    return base


def variants(base: Mapping[str, str], factors: Sequence[str]) -> dict[str, list[str]]:
    """{name: overrides}: the base, and every other level of each factor alone on top of it."""
    found = {"base": _overrides(base)}
    for factor in factors:
        for level in FACTORS[factor]:
            if level != base[factor]:
                found[f"{factor}={level}"] = _overrides({**base, factor: level})
    return found


def variant_folder(name: str, base: Mapping[str, str]) -> str:
    """What a variant's runs are called on disk: by all its levels, so that another base finds them again."""
    levels = dict(base)
    if name != "base":
        factor, _, level = name.partition("=")
        levels[factor] = level
    return "+".join(f"{factor}={levels[factor]}" for factor in FACTORS)


def cells(
    graphs: Sequence[str], machines: Sequence[int], named: Mapping[str, list[str]], seeds: Sequence[int]
) -> Iterator[Cell]:
    """Seed by seed, so that a study that is stopped early has all variants with fewer seeds."""
    for seed in seeds:
        for graph in graphs:
            for number in machines:
                for name, overrides in named.items():
                    yield Cell(graph, number, name, seed, tuple(overrides))


def _overrides(levels: Mapping[str, str]) -> list[str]:
    chosen = [setting for factor, level in levels.items() for setting in FACTORS[factor][level]]
    return [f"algorithm={PLUS}", *chosen]


def _graph_settings(graph: str, data: Path | None) -> list[str]:
    if graph == WORDNET:
        assert data is not None
        return wordnet_settings(data / WORDNET)
    root = [quoted_override("dataset.root", str(data / FOLDERS[graph]))] if data and graph in FOLDERS else []
    return [*SMALL_GRAPHS[graph], *root]


def _plain(name: str) -> str:
    return name.replace(" ", "_").replace(",", "")
