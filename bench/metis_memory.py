"""What METIS of each library holds, by the number of entries of the topology: the constants of data/metis.py.

    python -m bench.metis_memory [--nodes 153064 612257 2449029]

A generated graph of ogbn-products' degree is cut into eight parts, and its process tree watched (bench/memory.py). The
slope between the two largest sizes, and what is left of the largest without it, are printed for each library.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence

from bench.memory import Peak, watch
from llcg_dist.records.console import say, table

_DEGREE, _CUT = 50, "cut"
_GRAPH = ["dataset=synthetic", f"dataset.degree={_DEGREE}", "dataset.features=1", "cluster.num_machines=8"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="*", default=[153_064, 612_257, 2_449_029])
    sizes = parser.parse_args().nodes
    rows = []
    for backend in ("dgl", "pymetis"):
        held = [_while_metis_runs(nodes, backend) for nodes in sizes]
        for nodes, peak in zip(sizes, held, strict=True):
            rows.append([backend, f"{nodes:,}", *(f"{value / 1e9:.2f}" for value in (peak.anonymous, peak.total))])
        for name in ("anonymous", "total"):
            say(f"{backend}, {name}: {_line(sizes, [getattr(peak, name) for peak in held])}")
    say(table(["library", "nodes", "anonymous, GB", "with mapped files, GB"], rows))


def _while_metis_runs(nodes: int, backend: str) -> Peak:
    with tempfile.TemporaryDirectory(prefix="metis-memory-") as root:
        settings = [*_GRAPH, f"dataset.nodes={nodes}", f"partition.backend={backend}", f"partition.root={root}"]
        command = [sys.executable, "-m", "llcg_dist", "partition", *settings]
        stages, _ = watch(command, {"TMPDIR": root}, _stage_of)
        return next(stage.peak for stage in stages if stage.name == _CUT)


def _stage_of(line: str) -> str | None:
    return _CUT if line.startswith("cutting") else "afterwards" if line.startswith("counting") else None


def _line(sizes: Sequence[int], held: Sequence[int]) -> str:
    entries = [_DEGREE * nodes for nodes in sizes]
    slope = (held[-1] - held[-2]) / (entries[-1] - entries[-2])
    return f"{slope:.1f} bytes an entry and {(held[-1] - slope * entries[-1]) / 1e9:.2f} GB"


if __name__ == "__main__":
    main()
