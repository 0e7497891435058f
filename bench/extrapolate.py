"""What larger graphs and more machines would need, computed from what `bench.scale` measured:

    python -m bench.extrapolate

Nothing is run here: figures come from bench/results.json, sizes of published graphs from their papers, formulas from
the code that would run (the store's arrays, `llcg doctor`, the models themselves). The text says which is which.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.harness import RESULTS, publish, table
from llcg_dist.config.compose import load_config
from llcg_dist.config.model import ModelConfig
from llcg_dist.config.schema import Config
from llcg_dist.doctor.memory import evaluation_bytes
from llcg_dist.doctor.sizes import GraphSize
from llcg_dist.models import build_model
from llcg_dist.models.registry import structure
from llcg_dist.models.structure import Layer
from llcg_dist.training.flat_vector import flatten

_LINK = 10e9 / 8
"""Bytes a second of every host's network interface: 10 Gbit/s, an assumption."""
_PER_NODE = 2 * 16
"""What `llcg doctor` reckons for each node at the server: degrees and lists of nodes, for correction and evaluation."""


@dataclass(frozen=True)
class Size:
    """A published graph, and the model that it is trained with."""

    name: str
    graph: GraphSize
    model: ModelConfig

    @property
    def model_bytes(self) -> int:
        return 4 * flatten(build_model(self.model, self.graph.features, self.graph.classes)).numel()

    def evaluation(self, on_disk: bool) -> int:
        graph, chunk = self.graph, Config().evaluate.chunk
        return evaluation_bytes(self._layers, graph.nodes, graph.edges, chunk, on_disk) + _PER_NODE * graph.nodes

    @property
    def products(self) -> int:
        """Values that the sparse products of an evaluation read."""
        return self.graph.entries * sum(layer.width_in for layer in self._layers if layer.kind.reads_neighbours)

    @property
    def _layers(self) -> Sequence[Layer]:
        return structure(self.model).layers(self.graph.features, self.model.hidden, self.graph.classes)


def main() -> None:
    measured = json.loads(RESULTS.read_text())["scale"]["figures"]
    if not is_possible(measured):
        raise SystemExit("bench/results.json: run `python -m bench.scale` first, with the sizes 1/4 and 1")
    full_size, quarter = measured["sizes"]["1"], measured["sizes"]["1/4"]
    small = load_config([]).model
    papers = load_config(["model=sage", "model.layers=3", "model.hidden=256"]).model
    mag = load_config(["experiment=paper/mag240m16"]).model
    graphs = [
        Size("ogbn-products' size", GraphSize(2_449_029, full_size["train"]["num_edges"], 100, 47), small),
        Size("papers100M", GraphSize(111_059_956, 1_615_685_872, 128, 172), papers),
        Size("MAG240M, papers", GraphSize(121_751_666, 1_297_748_926, 768, 153, stored_bytes=2), mag),
    ]
    texts = [_graphs(graphs, full_size, quarter, measured["bare"]["8"]), _machines(graphs)]
    publish("extrapolate", "\n\n".join(texts), [])


def is_possible(measured: dict[str, Any]) -> bool:
    """Whether all that is computed from has been measured."""
    sizes = measured["sizes"]
    return all(sizes.get(size, {}).get("metis") for size in ("1", "1/4")) and "8" in measured["bare"]


@dataclass(frozen=True)
class Line:
    """A cost that grows along the line through the two larger measured sizes."""

    fixed: float
    slope: float

    @classmethod
    def through(cls, earlier: tuple[float, float], now: tuple[float, float]) -> "Line":
        slope = (now[1] - earlier[1]) / (now[0] - earlier[0])
        return cls(now[1] - slope * now[0], slope)

    def at(self, size: float) -> float:
        return self.fixed + self.slope * size


Row = Callable[[str, str, Callable[[Size], str]], list[str]]


def _graphs(graphs: list[Size], full_size: dict[str, Any], quarter: dict[str, Any], bare: dict[str, Any]) -> str:
    here, trained, rank = graphs[0], full_size["train"], bare["machine"]["anonymous"]
    seconds = trained["seconds_evaluate"]

    def row(what: str, measured: str, computed: Callable[[Size], str]) -> list[str]:
        return [what, measured, *map(computed, graphs)]

    def machine(machines: int) -> list[str]:
        measured = _memory(trained["machine"]["total"]) if machines == 8 else ""
        return row(f"a machine of {machines:,}", measured, lambda g: _memory(rank + g.graph.whole_bytes / machines))

    cutting, formulas = _cutting(row, here, full_size, quarter)
    rows = [
        row("nodes; edges", "", lambda g: f"{g.graph.nodes:,}; {g.graph.edges:,}"),
        row("bytes of an index", "", lambda g: str(g.graph.index_bytes)),
        row("the whole graph on disk", "", lambda g: _memory(g.graph.whole_bytes)),
        *cutting,
        row(
            "the server's own memory",
            _memory(trained["server"]["anonymous"]),
            lambda g: _memory(rank + g.evaluation(on_disk=False)),
        ),
        row("with evaluate.scratch", "", lambda g: _memory(rank + g.evaluation(on_disk=True))),
        row("one evaluation, one core", _time(seconds), lambda g: _time(seconds * g.products / here.products)),
        *map(machine, (8, 64, 1000)),
    ]
    head = ["", "measured at ogbn-products' size", *(f"computed: {graph.name}" for graph in graphs)]
    return f"{table(head, rows)}\n\n{_FORMULAS.format(*formulas, rank / 1e6, _PER_NODE)}"


def _cutting(
    row: Row, here: Size, full_size: dict[str, Any], quarter: dict[str, Any]
) -> tuple[list[list[str]], list[float]]:
    """(rows on ingest and both ways to cut, the numbers in their formulas)."""
    entries = 2 * quarter["train"]["num_edges"]
    earlier, now = quarter["metis"], full_size["metis"]
    metis = Line.through((entries, earlier["peak"]["total"]), (here.graph.entries, now["peak"]["total"]))
    exponent = math.log(now["seconds"] / earlier["seconds"]) / math.log(here.graph.entries / entries)
    cut, cut_before = (found["partition"]["cut (stream)"] for found in (full_size, quarter))
    stream = Line.through(
        (quarter["nodes"], cut_before["peak"]["anonymous"]), (full_size["nodes"], cut["peak"]["anonymous"])
    )
    ingest = full_size["partition"]["ingest"]["seconds"]

    def timed(what: str, seconds: float) -> list[str]:
        return row(what, _time(seconds), lambda g: _time(seconds * g.graph.entries / here.graph.entries))

    rows = [
        timed("ingest, time", ingest),
        row("METIS, memory", _memory(now["peak"]["total"]), lambda g: _memory(metis.at(g.graph.entries))),
        timed("METIS, time", now["seconds"]),
        row(
            "stream, its own memory",
            _memory(cut["peak"]["anonymous"]),
            lambda g: _memory(stream.at(g.graph.nodes * g.graph.index_bytes / 4)),
        ),
        timed("stream, time", cut["seconds"]),
    ]
    return rows, [metis.fixed / 1e9, metis.slope, exponent, stream.fixed / 1e9, stream.slope]


_FORMULAS = """How each line is computed:

- on disk: N + 1 + 2M indices, N · (features + label 8 + split 1 + part 4) bytes; an index has 4 where 2M < 2^31;
- METIS, memory: {:.2f} GB and {:.1f} bytes for each of 2M entries, the line through the two larger measured sizes;
- METIS, time: in proportion to 2M (between those two sizes it grew like M^{:.2f}), on one core;
- stream, its own memory: {:.2f} GB and {:.0f} bytes for each node, twice that where an index has 8 bytes; the topology
  is mapped besides, and need not fit. Ingest and stream, time: in proportion to 2M;
- the server: a bare rank ({:.0f} MB, measured) and the formula of `llcg doctor`: the states that enter and leave a
  layer, a chunk, {} bytes a node. Features and topology are mapped besides, and need not fit;
- an evaluation: in proportion to 2M times the widths that are aggregated, as long as what is read is in memory;
- a machine: a bare rank and 1/P of the graph on disk; edges that are cut make it less, batches more.

METIS' memory and time depend on how well a graph coarsens: they are the least certain lines (partition=random needs a
few numbers for every node, and no more). The server's states are those of all nodes; where few are labelled (MAG240M:
one in a hundred) the last layers compute only these and what they read. Models: the default one; three SAGE
layers of width 256; that of the paper's Figure 11 (two SAGE layers of width 1024, float16 features)."""


def _machines(graphs: list[Size]) -> str:
    rows = []
    for graph in graphs:
        for machines in (8, 100, 1000):
            model = graph.model_bytes
            rows.append(
                [
                    graph.name,
                    f"{machines:,}",
                    f"{model / 1e6:.2f} MB",
                    f"{2 * machines * model / 1e6:,.1f} MB",
                    f"{machines * model / _LINK:.3f} s",
                    f"{machines * model / 1e6:,.1f} MB",
                ]
            )
    head = ["model for", "P", "one model", "a round", "gather, broadcast", "updates at the server"]
    return f"{_MACHINES.format(_LINK / 1e9)}\n\n{table(head, rows)}"


_MACHINES = """More machines: all of this is computed. A round sends P models up and P down, as the ledger counts them;
control is less than 4 KiB for each machine. Links are a star, so that all models pass the server's one interface, down
and up: P · model / {:g} GB/s for either (10 Gbit/s, an assumption). The server holds all P updates until it has
averaged them in part order."""


def _memory(value: float) -> str:
    return f"{value / 1e9:,.2f} GB" if value < 1e10 else f"{value / 1e9:,.0f} GB"


def _time(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds < 600 else f"{seconds / 60:,.0f} min"


if __name__ == "__main__":
    main()
