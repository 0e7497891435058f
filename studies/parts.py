"""Do other parts learn better? Scores on METIS parts, stream's, parts balanced by training labels, and spread clusters:

    python -m studies.parts --data FOLDER [--seeds 5] [--ways stream metis] [--graphs computers "homophily 0.5"]
                            [--workers 2] [--out runs/parts]
    python -m studies.parts --data FOLDER --cuts

Four graphs, eight machines, 25 rounds, with the settings of studies.accuracy. Every seed has parts of its own, so that
no score hangs on one cut. Scores are with the METIS of this environment (partition.backend=auto), cut, balance and
skew with every library's that is installed. FOLDER holds Amazon/, Planetoid/ and Hetero/ as PyG's classes expect them.
Finished runs are kept (studies/pool.py). KINDS on all graphs go to one table of docs/studies/performance.md, and stream
beside METIS to another. With --cuts nothing is trained: the edges that stream cuts beside METIS, on WordNet too.
"""

import argparse
import importlib.util
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness import Claim, Spread, publish, table

from llcg_dist.config.compose import load_config
from llcg_dist.data.cut import PartitionQuality
from llcg_dist.data.datasets import load_dataset
from llcg_dist.data.parts import assign_parts
from studies.accuracy_grid import COMMON, FIRST_SEED, FOLDERS, FOUR, GRAPHS
from studies.accuracy_tables import difference, paired
from studies.pool import run_all
from studies.real_graphs import mean_std
from studies.wordnet import WORDNET
from studies.wordnet import settings as wordnet_settings

METHODS = ("psgd_pa", "llcg", "llcg_plus")
STREAM, METIS, PYMETIS = "stream", "metis", "metis (pymetis)"
MOST_CUT = 1.25
"""Cut edges of stream, in terms of METIS's."""
WAYS = {
    METIS: ["partition=metis"],  # llcg_plus alone would bring clusters
    PYMETIS: ["partition=metis", "partition.backend=pymetis"],  # newer than DGL's, and cuts fewer edges
    STREAM: ["partition=stream"],
    "metis, labels": ["partition=metis", "partition.balance=labels"],
    "clusters": ["partition=clusters"],
}
KINDS = (METIS, "metis, labels", "clusters")
BACKENDS = [name for name in ("dgl", "pymetis") if importlib.util.find_spec(name)]

Scores = dict[tuple[str, str, str], dict[int, float]]
"""{(graph, way, method): {seed: test score}}"""


@dataclass(frozen=True)
class Study:
    """What is run, where."""

    graphs: Sequence[str]
    ways: Sequence[str]
    seeds: range
    data: Path
    out: Path

    def settings(self, graph: str, way: str) -> list[str]:
        if graph == WORDNET:
            return [*COMMON, *wordnet_settings(self.data / WORDNET), *WAYS[way]]
        root = [f"dataset.root='{self.data / FOLDERS[graph]}'"] if graph in FOLDERS else []
        return [*COMMON, *GRAPHS[graph], *root, *WAYS[way]]

    def runs(self) -> dict[Path, list[str]]:
        """{run folder: settings}"""
        return {
            self.folder(graph, way, method, seed): [
                *self.settings(graph, way), f"algorithm={method}", f"seed={seed}", f"partition.seed={seed}",
                f"partition.root={self.out}/stores",
            ]
            for seed in self.seeds
            for graph in self.graphs
            for way in self.ways
            for method in METHODS
        }  # fmt: skip

    def folder(self, graph: str, way: str, method: str, seed: int) -> Path:
        return self.out / "-".join(name.replace(" ", "_") for name in (graph, way, method, f"seed{seed}"))

    def scores(self) -> Scores:
        return {
            (graph, way, method): {seed: _test_score(self.folder(graph, way, method, seed)) for seed in self.seeds}
            for graph in self.graphs
            for way in self.ways
            for method in METHODS
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--graphs", nargs="+", choices=FOUR, default=list(FOUR))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/parts"))
    parser.add_argument("--cuts", action="store_true", help="cut edges of stream and METIS, on real graphs")
    given = parser.parse_args()
    if given.cuts:
        publish_cuts(given.data)
        return
    seeds = range(FIRST_SEED, FIRST_SEED + given.seeds)
    study = Study(given.graphs, given.ways, seeds, given.data, given.out)
    run_all(study.runs(), given.workers)
    scores = study.scores()
    if {STREAM, METIS} <= set(given.ways):
        publish("stream_parts", stream_table(scores, given.graphs), stream_claims(scores, given.graphs))
    if set(KINDS) <= set(given.ways) and set(given.graphs) == set(FOUR):
        publish("parts", _parts_table(study, scores), [])


def publish_cuts(data: Path) -> None:
    """Cut edges of stream and of every METIS there is: parts of eight, one seed."""
    study = Study(FOUR, [], range(1), data, Path())
    rows, claims = [], []
    for graph in (*FOUR, WORDNET):
        ways = {STREAM: study.settings(graph, STREAM)}
        for backend in BACKENDS:
            ways[backend] = [*study.settings(graph, METIS), f"partition.backend={backend}"]
        cut = {name: _measured(settings)[0].cut_share for name, settings in ways.items()}
        over = [cut[STREAM] / cut[backend] for backend in BACKENDS]
        shares = [f"{100 * share:.1f}" for share in cut.values()]
        rows.append([graph, *shares, " / ".join(f"{ratio:.2f}" for ratio in over)])
        claims.append(Claim(f"{graph}: cut edges, stream over METIS", Spread.of([max(over)]), at_most=MOST_CUT))
    names = " / ".join(BACKENDS)
    head = ["graph", "stream, %", *(f"METIS ({backend}), %" for backend in BACKENDS), f"stream over {names}"]
    publish("stream_cuts", table(head, rows), claims)


def stream_table(scores: Scores, graphs: Sequence[str]) -> str:
    """Test scores on all parts, and the differences of stream's, paired by seed."""
    rows, rivals = [], _rivals(scores)
    for graph in graphs:
        for method in METHODS:
            of_way = {way: scores[graph, way, method] for way in (*rivals, STREAM)}
            means = [mean_std(list(by_seed.values())) for by_seed in of_way.values()]
            rows.append([graph, method, *means, *(difference(of_way[STREAM], of_way[rival]) for rival in rivals)])
    differences = [f"stream - {rival}, ± standard error" for rival in rivals]
    return table(["graph", "method", *rivals, STREAM, *differences], rows)


def _rivals(scores: Scores) -> list[str]:
    """Every METIS that was run."""
    ways = {way for _, way, _ in scores}
    return [way for way in (METIS, PYMETIS) if way in ways]


def stream_claims(scores: Scores, graphs: Sequence[str]) -> list[Claim]:
    """Stream's parts are not below METIS's by more than two standard errors."""
    claims = []
    for graph in graphs:
        for method in METHODS:
            for rival in _rivals(scores):
                found = paired(scores[graph, STREAM, method], scores[graph, rival, method])
                if found:
                    what = f"{graph}, {method}: stream - {rival}, points of test score + 2 standard errors"
                    claims.append(Claim(what, Spread.of([found[0] + 2 * found[1]]), at_least=0))
    return claims


def _parts_table(study: Study, scores: Mapping[tuple[str, str, str], Mapping[int, float]]) -> str:
    rows = []
    for graph in study.graphs:
        for way in KINDS:
            common = study.settings(graph, way)
            of_backends = [_quality([*common, f"partition.backend={backend}"]) for backend in BACKENDS]
            quality = [" / ".join(values) for values in zip(*of_backends, strict=True)]
            means = [mean_std(list(scores[graph, way, method].values())) for method in METHODS]
            rows.append([graph, way, *quality, *means])
    measures = ("cut %", "largest part", "worst skew %", "seconds to cut")
    return table(["graph", "parts", *(f"{name}, {' / '.join(BACKENDS)}" for name in measures), *METHODS], rows)


def _measured(settings: list[str]) -> tuple[PartitionQuality, float]:
    """(the parts, seconds that it took to cut them)."""
    config = load_config(settings)
    graph, num_parts = load_dataset(config.dataset), config.cluster.num_machines
    started = time.perf_counter()
    assignment = assign_parts(graph, num_parts, config.partition)
    seconds = time.perf_counter() - started
    return PartitionQuality.of(graph, assignment, num_parts), seconds


def _quality(settings: list[str]) -> list[str]:
    """Cut, balance, skew of the training labels, and how long it took."""
    found, seconds = _measured(settings)
    cut, skew = 100 * found.cut_share, 100 * found.worst_label_skew
    return [f"{cut:.1f}", f"{found.largest_part:.2f}", f"{skew:.0f}", f"{seconds:.1f}"]


def _test_score(run_dir: Path) -> float:
    """Percent, of the round with the best validation score."""
    return 100 * float(json.loads((run_dir / "summary.json").read_text())["test_score_at_best_val"])


if __name__ == "__main__":
    main()
