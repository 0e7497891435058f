"""Files that are larger than memory: read in pieces, the same store, byte for byte; cut short, no store at all."""

import hashlib
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.data.csr import undirected_csr
from llcg_dist.data.partition import ensure_store
from llcg_dist.data.rows import Array
from llcg_dist.data.store import read_shard
from llcg_dist.errors import UserError
from tests.helpers.jobs import finish, start

NODES, EDGES = 300, 4000
LITTLE = 1e-5
"""GB: less than any of the files."""


def content() -> dict[str, Array]:
    rng = np.random.default_rng(5)
    return {
        "edges": rng.integers(NODES, size=(2, EDGES)),
        "features": rng.standard_normal((NODES, 6)),
        "labels": rng.integers(4, size=NODES),
    }


def write_npy(folder: Path) -> list[str]:
    arrays = content()
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return [f"dataset.{name}={folder / name}.npy" for name in arrays]


def write_parquet(folder: Path) -> list[str]:
    """Ids are text in no order."""
    arrays = content()
    ids = np.array([f"node-{number}" for number in np.random.default_rng(1).permutation(NODES)])
    tables = {
        "edges": pd.DataFrame({"src": ids[arrays["edges"][0]], "dst": ids[arrays["edges"][1]], "kind": "likes"}),
        "features": pd.DataFrame(arrays["features"], columns=list("uvwxyz")).assign(node=ids),
        "labels": pd.DataFrame({"node": ids, "label": arrays["labels"]}),
    }
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet", row_group_size=512)
    return [f"dataset.{name}={folder / name}.parquet" for name in tables]


FORMATS = {"npy": write_npy, "parquet": write_parquet}


def store(folder: Path, settings: list[str], name: str, memory: float | None) -> Path:
    given = [f"dataset.memory={memory}"] if memory else []
    place = [f"partition.root={folder / name}", "cluster.num_machines=2", "partition=random"]
    return ensure_store(load_config(["dataset=files", *settings, *place, *given]))[0]


def bytes_of(store: Path) -> dict[str, str]:
    files = sorted(path for path in store.rglob("*") if path.is_file())
    return {str(path.relative_to(store)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("kind", FORMATS)
def test_pieces_make_the_same_store(kind: str, tmp_path: Path) -> None:
    settings = FORMATS[kind](tmp_path)
    few, many = store(tmp_path, settings, "little", LITTLE), store(tmp_path, settings, "all", 1.0)
    assert bytes_of(few) == bytes_of(many)
    assert few.name == many.name  # the memory is no property of the graph
    arrays, graph = content(), read_shard(few / "global").graph
    src, dst = arrays["edges"]
    indptr, indices = undirected_csr(src, dst, NODES)
    assert graph.indptr.tobytes() == indptr.tobytes()
    assert graph.indices.tobytes() == indices.tobytes()
    assert graph.features.tobytes() == arrays["features"].astype(np.float32).tobytes()
    assert np.array_equal(graph.labels, arrays["labels"])


@pytest.mark.parametrize(("limit", "allocator"), [("2 << 30", "system"), ("resource.RLIM_INFINITY", "mimalloc")])
def test_arrow_reserves_nothing_where_a_process_may_hold_little(limit: str, allocator: str) -> None:
    code = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_DATA, ({limit}, resource.RLIM_INFINITY))\n"
        "from llcg_dist.cli.main import main\n"
        "sys.argv = ['llcg', '--version']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "import pyarrow; print(pyarrow.default_memory_pool().backend_name)"
    )
    outcome = finish(start([sys.executable, "-c", code]))
    assert outcome.out.splitlines()[-1] == allocator, outcome


def test_an_unknown_node_is_found_in_any_piece(tmp_path: Path) -> None:
    settings = write_parquet(tmp_path)
    table = pd.read_parquet(tmp_path / "edges.parquet")
    table.loc[3700, "dst"] = "nobody"
    table.to_parquet(tmp_path / "edges.parquet")
    with pytest.raises(UserError, match=r"edges.parquet: row 3700: dst 'nobody' is not a node of"):
        store(tmp_path, settings, "parts", LITTLE)
    arrays = content()
    arrays["edges"][1, 2900] = NODES
    settings = write_npy(tmp_path)
    np.save(tmp_path / "edges.npy", arrays["edges"])
    with pytest.raises(UserError, match=r"edges.npy: column 2900: node '300' is not a node of"):
        store(tmp_path, settings, "parts", LITTLE)
    assert not (tmp_path / "parts").exists()


@pytest.mark.parametrize("memory", ["0", "-1", "inf", "nan"])
def test_memory_that_cannot_be(memory: str) -> None:
    with pytest.raises(UserError, match=r"^dataset.memory=.*: must be a number of GB above 0"):
        load_config(["dataset=files", f"dataset.memory={memory}"])


KILLED = """
import os, sys
from pathlib import Path
from llcg_dist.data import array_writer
from tests.unit.data.datasets.test_large_files import LITTLE, store

writes, append = int(sys.argv[2]), array_writer.ArrayWriter.append
def dies(self, rows):
    global writes
    writes -= 1
    if writes == 0:
        os.kill(os.getpid(), 9)
    append(self, rows)
array_writer.ArrayWriter.append = dies
folder = Path(sys.argv[1])
store(folder, [f"dataset.{name}={folder / name}.npy" for name in ("edges", "features", "labels")], "parts", LITTLE)
"""


def test_a_killed_load_leaves_nothing_that_passes_for_whole(tmp_path: Path) -> None:
    settings = write_npy(tmp_path)
    expected = bytes_of(store(tmp_path, settings, "expected", LITTLE))
    for writes in (1, 5, 60):
        command = [sys.executable, "-c", KILLED, str(tmp_path), str(writes)]
        killed = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert not [path for path in (tmp_path / "parts").iterdir() if not path.name.startswith(".")]
    assert bytes_of(store(tmp_path, settings, "parts", LITTLE)) == expected
    assert [path.name[0] for path in (tmp_path / "parts").iterdir()] == ["f"]
