"""Graphs of ogbn-products' size, smaller and larger, on one host: what each stage costs, and how that grows.

    python -m bench.scale [--sizes 1/16 1/4 1] [--machines 2 4 8] [--store KEY=VALUE …] [--scratch] [--memory GB]
                          [--keep] [--predict] [--folder DIR]

Each size (a factor of ogbn-products') is written as .npy files, ingested and cut into eight parts by partition=stream,
cut by METIS beside it where memory is enough, trained for six rounds with evaluation, and predicted, by the commands
that a user types. Then the graph of 1/4 is cut into 2, 4 and 8 parts, to see what a machine holds of it.

What a stage costs is kept as soon as it is known, and the files of a size until all of its stages are: the same command
goes on after a kill. The full size needs 5 GB of disk, ten times it 45 GB. Default: a quarter of an hour; ten times:
forty minutes.
With --predict only `llcg doctor` is asked again about these sizes, and compared with what was measured of them before.
With --scratch the hidden states of an evaluation are on disk, with --memory all of it runs on a host with so much
memory (bench/confined.py).
"""

import argparse
import json
import tempfile
from fractions import Fraction
from functools import partial
from pathlib import Path

from bench import extrapolate
from bench.confined import confine
from bench.harness import RESULTS, publish
from bench.kept import Figures, Kept
from bench.scale_stages import NODES, PREDICTED, Sized, generated
from bench.scale_tables import OF_SHARES, claims_of, text_of
from llcg_dist.data.stream import KERNELS

_BARE_NODES = 2_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=Fraction, nargs="*", default=[Fraction(1, 16), Fraction(1, 4), Fraction(1)])
    parser.add_argument("--machines", type=int, nargs="*", default=[2, 4, 8], help="parts that 1/4 is cut into")
    parser.add_argument(
        "--store", nargs="*", default=[], help="settings of the store, partition.features_dtype=float16"
    )
    parser.add_argument("--keep", action="store_true", help="what is not measured now stays as it was measured before")
    parser.add_argument("--predict", action="store_true", help="predictions anew, and nothing else")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "llcg-scale"))
    parser.add_argument("--scratch", action="store_true", help="hidden states of an evaluation on disk")
    parser.add_argument("--memory", type=float, help="GB of the host, mapped files included; default: all that it has")
    arguments = parser.parse_args()
    if arguments.memory:
        confine(arguments.memory)
    if arguments.predict:
        arguments.keep, arguments.machines = True, []
    kept, published = Kept(arguments.folder / "figures.json"), _published() if arguments.keep else {}
    figures: Figures = {"sizes": {}, "shares": {}, "bare": {}} | published
    described = [
        *arguments.store,
        *(["states on disk"] if arguments.scratch else []),
        *([f"on a host of {arguments.memory:g} GB"] if arguments.memory else []),
    ]
    KERNELS.load()  # compiled before anything is timed
    missing = [str(factor) for factor in arguments.sizes if str(factor) not in figures["sizes"]]
    if arguments.predict and missing:
        parser.error(f"--predict: {', '.join(missing)} was not measured yet; leave --predict out")
    for factor in arguments.sizes:
        sized = Sized(factor, arguments.folder, arguments.store, arguments.scratch)
        found = {
            stage: kept.measured(f"{factor} {' '.join([stage, *described])}", measure)
            for stage, measure in sized.stages().items()
            if not arguments.predict or stage == PREDICTED
        }
        before = figures["sizes"][str(factor)] if arguments.predict else {}
        figures["sizes"][str(factor)] = before | found | {"nodes": sized.nodes, "store": described}
        sized.remove()
        report(figures)  # it takes long: what is known so far is there to be read
    for machines in arguments.machines:
        for name, nodes in (("bare", _BARE_NODES), ("shares", int(OF_SHARES * NODES))):
            measure = partial(generated, nodes, machines, arguments.folder / f"{name}-{machines}")
            figures[name][str(machines)] = kept.measured(f"{name} {machines}", measure)
    report(figures)
    kept.forget()


def report(figures: Figures) -> None:
    publish("scale", text_of(figures), claims_of(figures), figures)
    if extrapolate.is_possible(figures):
        extrapolate.main()


def _published() -> Figures:
    """What bench/results.json holds; sizes without a number of nodes were measured by an older bench."""
    figures: Figures = json.loads(RESULTS.read_text()).get("scale", {}).get("figures", {})
    return figures if all("nodes" in found for found in figures.get("sizes", {}).values()) else {}


if __name__ == "__main__":
    main()
