"""A graph as Parquet tables with text for ids, ingested and cut by processes that may hold 2 GB each:

    python -m bench.tables [--size 1] [--limit 2] [--folder DIR]

The files of bench.scale at this factor of ogbn-products' size, as tables: edges with the columns src and dst, features
and labels with a column node; ids are texts such as `user 0001234`. `llcg partition partition=stream` runs under
RLIMIT_DATA (what a process holds for itself; mapped files do not count), and its graph and parts must be those of the
same graph as .npy, to the bit.
"""

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.harness import Claim, Spread, publish, table
from bench.memory import Stage, watch
from bench.scale_files import file_settings, write_files
from bench.scale_stages import EDGES, ENVIRONMENT, FRACTIONS, IN_ALL, LLCG, NODES, PARTS, STAGES, cost
from llcg_dist.data.atomic_files import staged_folder
from llcg_dist.data.rows import Array, slices

_ROWS_AT_ONCE = 1 << 17
_SAME = ("indptr", "indices", "features", "labels", "split", "assignment")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=Fraction, default=Fraction(1))
    parser.add_argument("--limit", type=float, default=2.0, help="GB that a process may hold")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "llcg-tables"))
    arguments = parser.parse_args()
    arrays, tables, nodes = arguments.folder / "arrays", arguments.folder / "tables", int(arguments.size * NODES)
    write_files(arrays, nodes, int(arguments.size * EDGES))
    write_tables(arrays, tables)
    settings = [f"dataset.{name}={tables}/{name}.parquet" for name in ("edges", "features", "labels")]
    limited = ["prlimit", f"--data={round(arguments.limit * 1e9)}"]
    stages = partition(limited, ["dataset=files", *settings], arguments.folder / "from tables")
    partition([], file_settings(arrays), arguments.folder / "from arrays")
    same = same_bits(*(_store(arguments.folder / name) for name in ("from tables", "from arrays")))
    size = sum(path.stat().st_size for path in tables.iterdir())
    shutil.rmtree(arguments.folder)
    about = (
        f"{nodes:,} nodes with ids of text, {size / 1e9:.2f} GB of Parquet, under RLIMIT_DATA of {arguments.limit:g} GB"
    )
    costs = {stage.name: cost([stage]) for stage in stages} | {IN_ALL: cost(stages)}
    rows = [
        [
            name,
            f"{of['seconds']:.1f} s",
            f"{of['peak']['anonymous'] / 1e9:.2f} GB",
            f"{of['peak']['total'] / 1e9:.2f} GB",
        ]
        for name, of in costs.items()
    ]
    text = f"{about}: graph and parts {'are' if same else 'are **not**'} those of the same graph as .npy, to the bit."
    claims = [Claim("of all processes together anonymous, GB", Spread.of([costs[IN_ALL]["peak"]["anonymous"] / 1e9]))]
    publish("tables", f"{text}\n\n{table(['stage', 'time', 'anonymous', 'with mapped files'], rows)}", claims, costs)


def write_tables(arrays: Path, folder: Path) -> None:
    """The arrays of write_files as Parquet; nothing where they are there already."""
    if folder.exists():
        return
    edges, features, labels = (
        np.load(arrays / f"{name}.npy", mmap_mode="r") for name in ("edges", "features", "labels")
    )

    def node(rows: slice) -> Array:
        return np.arange(rows.start, rows.stop)

    def feature_rows(rows: slice) -> dict[str, pa.Array]:
        return {"node": _ids(node(rows))} | {f"x{i}": pa.array(column) for i, column in enumerate(features[rows].T)}

    with staged_folder(folder) as stage:
        ends = {"src": edges[0], "dst": edges[1]}
        _write(
            stage / "edges.parquet", edges.shape[1], lambda rows: {name: _ids(end[rows]) for name, end in ends.items()}
        )
        _write(stage / "features.parquet", len(features), feature_rows)
        _write(
            stage / "labels.parquet",
            len(labels),
            lambda rows: {
                "node": _ids(node(rows)),
                "label": pa.array([f"class {label:02d}" for label in labels[rows]]),
            },
        )


def partition(limited: Sequence[str], dataset: list[str], folder: Path) -> list[Stage]:
    """What every stage of `llcg partition` costs; the store is in the folder."""

    def stage_of(line: str) -> str | None:
        return next((name for start, name in STAGES.items() if line.startswith(start)), None)

    shutil.rmtree(folder, ignore_errors=True)
    settings = [*dataset, *FRACTIONS, "partition=stream", f"cluster.num_machines={PARTS}", f"partition.root='{folder}'"]
    return watch([*limited, LLCG, "partition", *settings], ENVIRONMENT, stage_of)[0]


def same_bits(one: Path, other: Path) -> bool:
    """Whether two stores hold the same whole graph and the same parts of it."""
    described = [json.loads((store / "global" / "graph.json").read_text())["arrays"] for store in (one, other)]
    return all(described[0][name] == described[1][name] for name in _SAME)


def _store(folder: Path) -> Path:
    return next(folder.glob("*/manifest.json")).parent


def _ids(numbers: Array) -> pa.Array:
    return pa.array([f"user {number:07d}" for number in numbers.tolist()])


def _write(path: Path, rows: int, columns: Callable[[slice], dict[str, pa.Array]]) -> None:
    writer: pq.ParquetWriter | None = None
    for piece in slices(rows, _ROWS_AT_ONCE):
        batch = pa.table(columns(piece))
        writer = writer or pq.ParquetWriter(path, batch.schema)
        writer.write_table(batch)
    if writer:
        writer.close()


if __name__ == "__main__":
    main()
