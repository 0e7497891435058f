"""How long a machine's local step takes, against the same step in other hands:

    python -m bench.local_step [--repeats 9] [--steps 8]

One thread, 3 layers, batches of 256, fan-out 10, degree 50, at hidden width 256 and 64; see bench/step_contenders.py.
Those in bfloat16: ours with train.precision=bfloat16, the others under torch.autocast of that type.
"""

import argparse
import dataclasses
from functools import partial

from bench.harness import Claim, Spread, interleaved, publish, ratio, table
from bench.step_contenders import dgl_loop, floor, ours, ours_ahead, pyg_over_edges, under_autocast
from bench.step_profile import shares_by_kind
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.config.train import Precision
from llcg_dist.data.datasets import load_dataset
from llcg_dist.data.graph import Graph
from llcg_dist.training.threads import prepare_computing

SETTINGS = [
    "dataset.nodes=100000", "dataset.features=128", "dataset.degree=50", "dataset.classes=40", "model.layers=3",
    "train.local_batch_size=256",
]  # fmt: skip

HIDDEN = (256, 64)
FASTER_STEP, FASTER_AHEAD = {256: 1.0, 64: 1.05}, {256: 1.08, 64: 1.15}
"""By hidden width: the wider the model, the less drawing weighs."""
FASTER_BFLOAT16, KEPT_LEAD = {256: 1.35, 64: 1.0}, {256: 1.0}


def main() -> None:
    arguments = repeats_and_steps(__doc__)
    prepare_computing(threads=1)
    graph = load_dataset(load_config(SETTINGS).dataset)
    times, profiles, claims = {}, {}, []
    for hidden in HIDDEN:
        config = load_config([*SETTINGS, f"model.hidden={hidden}"])
        times[hidden] = measure(config, graph, arguments.repeats, arguments.steps)
        profiles[hidden] = shares_by_kind(config, graph)
        claims += claims_of(hidden, times[hidden])
    widths = [f"hidden {hidden}" for hidden in HIDDEN]
    steps = side_by_side({hidden: in_milliseconds(seconds) for hidden, seconds in times.items()})
    kinds = side_by_side(
        {h: {kind: f"{value:.0f} %" for kind, value in found.items()} for h, found in profiles.items()}
    )
    tables = [table(["ms a step", *widths], steps), table(["share of llcg_dist's own step", *widths], kinds)]
    publish("local_step", "\n\n".join(tables), claims, {"profile": profiles})


def repeats_and_steps(doc: str | None) -> argparse.Namespace:
    """The command line of a program that measures steps."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--steps", type=int, default=8)
    return parser.parse_args()


def measure(config: Config, graph: Graph, repeats: int, steps: int) -> dict[str, list[float]]:
    """Seconds of a step, by contender and turn."""
    rounded = dataclasses.replace(config, train=dataclasses.replace(config.train, precision=Precision.bfloat16))
    contenders = {
        "llcg_dist": ours(config, graph),
        "llcg_dist, LABOR": ours(config, graph, "labor"),
        "llcg_dist, drawing ahead": ours_ahead(config, graph),
        "llcg_dist with DGL's sampler": ours(config, graph, "dgl"),
        "DGL's own loop": dgl_loop(config, graph),
        "PyG over edge_index": pyg_over_edges(config, graph),
        "floor": floor(config, graph),
        "llcg_dist, bfloat16": ours(rounded, graph),
        "DGL's own loop, bfloat16": under_autocast(dgl_loop(config, graph)),
        "PyG over edge_index, bfloat16": under_autocast(pyg_over_edges(config, graph)),
    }
    turns = {name: partial(contender, steps) for name, contender in contenders.items()}
    return {name: [value / steps for value in values] for name, values in interleaved(turns, repeats).items()}


def in_milliseconds(seconds: dict[str, list[float]]) -> dict[str, str]:
    return {name: str(Spread.of([1e3 * value for value in values])) for name, values in seconds.items()}


def side_by_side(columns: dict[int, dict[str, str]]) -> list[list[str]]:
    """A row for each name, a column for each hidden width."""
    return [[name, *(column[name] for column in columns.values())] for name in columns[HIDDEN[0]]]


def claims_of(hidden: int, seconds: dict[str, list[float]]) -> list[Claim]:
    step, labor, ahead, before, dgl, pyg, least, rounded, rounded_dgl, rounded_pyg = seconds.values()
    return [
        Claim(f"hidden {hidden}: DGL's loop / llcg_dist", ratio(dgl, step), at_least=1.15),
        Claim(f"hidden {hidden}: PyG over edge_index / llcg_dist", ratio(pyg, step), at_least=1.7),
        Claim(f"hidden {hidden}: llcg_dist / floor", ratio(step, least), at_most=1.3),
        Claim(f"hidden {hidden}: DGL's loop / llcg_dist with LABOR", ratio(dgl, labor), at_least=1.6),
        Claim(f"hidden {hidden}: with DGL's sampler / llcg_dist", ratio(before, step), at_least=FASTER_STEP[hidden]),
        Claim(f"hidden {hidden}: llcg_dist / drawing ahead", ratio(step, ahead), at_least=FASTER_AHEAD[hidden]),
        Claim(f"hidden {hidden}: llcg_dist / LABOR", ratio(step, labor), at_least=1.15),
        Claim(f"hidden {hidden}: llcg_dist / bfloat16", ratio(step, rounded), at_least=FASTER_BFLOAT16[hidden]),
        lead_kept(hidden, "DGL's loop", (dgl, step), (rounded_dgl, rounded)),
        lead_kept(hidden, "PyG over edge_index", (pyg, step), (rounded_pyg, rounded)),
    ]


def lead_kept(
    hidden: int, other: str, plain: tuple[list[float], list[float]], rounded: tuple[list[float], list[float]]
) -> Claim:
    """How far ahead in bfloat16, by how far ahead in float32; both are (seconds of another, seconds of ours)."""
    leads = [[theirs / own for theirs, own in zip(*turns, strict=True)] for turns in (rounded, plain)]
    what = f"hidden {hidden}: lead over {other}, bfloat16 / float32"
    return Claim(what, ratio(*leads), at_least=KEPT_LEAD.get(hidden))


if __name__ == "__main__":
    main()
