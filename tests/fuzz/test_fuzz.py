"""Every damaged input either loads or ends with our own error: no traceback, no hang, no memory blow-up.

See tests/fuzz/bombard.py for how many are tried.
"""

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from llcg_dist import train
from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.cli.watch.state import read_state
from llcg_dist.cli.watch.view import plain_lines
from llcg_dist.comm.ledger import Ledger
from llcg_dist.comm.loopback import LoopbackTransport
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Verify
from llcg_dist.data.partition import ensure_store
from llcg_dist.data.store import read_manifest, read_shard
from llcg_dist.errors import UserError
from llcg_dist.job.checkpoint import SERVER_OWNER, CheckpointFiles, _hash
from llcg_dist.job.open_run import OpenRun
from llcg_dist.job.run_dir import inspect_run_dir
from llcg_dist.job.server_factory import build_server, start_after
from llcg_dist.predict import read_run_config
from llcg_dist.records.rows import read_rows
from llcg_dist.report import find_runs, write_report
from tests.fuzz.bombard import bombard, damaged
from tests.helpers.mutate import mutate_bytes, mutate_json

TINY = ["experiment=tiny", "cluster.backend=loopback", "num_rounds=2"]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("good")
    torch.set_num_threads(1)
    train.run(load_config([*TINY, f"partition.root={root}/parts", f"run_dir={root}/run"]), train.Rank())
    return root


def test_settings(tmp_path: Path) -> None:
    keys = ["algorithm", "algorithm.K", "model.arch", "sampling.fanout", "run_dir", "dataset.nodes", "seed", "~model"]
    values = [
        "1",
        "-1",
        "1e400",
        "nan",
        "abc",
        "[1,2",
        "[-1,5]",
        "null",
        "${seed}",
        "'",
        "llcg",
        "{a:1}",
        "S",
        "=",
        "\\",
    ]
    values += ['"a b"', ""]

    def attempt(chance: random.Random) -> None:
        overrides = [f"{chance.choice([*keys, ''])}={chance.choice(values)}" for _ in range(chance.randrange(1, 3))]
        if chance.random() < 0.2:
            overrides = [chance.choice(["+", "++", "~", ""]) + overrides[0]]
        load_config(overrides)

    bombard(0.02, attempt)  # composing takes a tenth of a second


def test_manifest(good: Path) -> None:
    config = load_config([*TINY, f"partition.root={good}/parts"])
    store, _ = ensure_store(config)
    text = (store / "manifest.json").read_bytes()

    def attempt(chance: random.Random) -> None:
        with damaged(store / "manifest.json", mutate_json(chance, text)):
            manifest = read_manifest(store)
            assert len(manifest["parts"]) == manifest["num_parts"] > 0
            assert sum(part["train_nodes"] for part in manifest["parts"]) >= 0

    bombard(0.18, attempt)


def test_shard_description(good: Path) -> None:
    folder = next((good / "parts").iterdir()) / "part0"
    text = (folder / "graph.json").read_bytes()
    arrays = {name: np.load(folder / f"{name}.npy") for name in ("indptr", "indices", "features", "labels", "split")}

    def attempt(chance: random.Random) -> None:
        with damaged(folder / "graph.json", mutate_json(chance, text)):
            graph = read_shard(folder).graph
        for name in arrays:  # they are intact: what loads at all must be them
            assert np.array_equal(getattr(graph, name), arrays[name])

    bombard(0.25, attempt)


@pytest.mark.parametrize("verify", ["sizes", "full"])
def test_arrays(good: Path, tmp_path: Path, verify: str) -> None:
    folder = tmp_path / "part0"
    shutil.copytree(next((good / "parts").iterdir()) / "part0", folder)
    contents = {path: path.read_bytes() for path in folder.glob("*.npy")}

    def attempt(chance: random.Random) -> None:
        path = chance.choice(sorted(contents))
        bad = mutate_bytes(chance, contents[path])
        with damaged(path, bad):
            graph = read_shard(folder, Verify(verify)).graph
            assert verify == "sizes" or bad == contents[path]
            assert graph.num_nodes > 0

    bombard(0.1, attempt)


def test_checkpoints(good: Path, tmp_path: Path) -> None:
    """Half of them with the right hash in the name, as a stranger would write them."""
    source = max((good / "run" / "checkpoints").glob("server-*"))
    content = source.read_bytes()
    config = load_config([*TINY, f"partition.root={good}/parts"])
    store, manifest = ensure_store(config)
    full = read_shard(store / "global")
    resumed = replace(config, checkpoint=replace(config.checkpoint, dir=str(tmp_path / "checkpoints")))

    def attempt(chance: random.Random) -> None:
        folder = tmp_path / "checkpoints"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        bad = mutate_bytes(chance, content)
        name = f"server-r000002-{_hash(bad)}.pt" if chance.random() < 0.5 else source.name
        (folder / name).write_bytes(bad)
        files = CheckpointFiles(folder, SERVER_OWNER)
        if files.rounds() == [2]:
            files.load(2)
            run_dir = tmp_path / "run"
            shutil.rmtree(run_dir, ignore_errors=True)
            shutil.copytree(good / "run", run_dir)
            run = OpenRun(resumed, build_algorithm(resumed), run_dir, store, manifest, full, "cpu")
            server = build_server(run, start_after(run, 2), lambda codec: LoopbackTransport([]), Ledger(frozenset()))
            server._checkpoints.start()
        else:
            raise UserError("passed over")

    bombard(0.1, attempt)


def test_records(good: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    shutil.copytree(good / "run", run_dir)
    config = load_config([*TINY, f"partition.root={good}/parts", f"run_dir={run_dir}"])
    names = ("metrics.jsonl", "config.yaml", "summary.json", "partition.json", "classes.json", "starts.json")
    contents = {name: (run_dir / name).read_bytes() for name in names}

    readers: list[Callable[[], object]] = [
        lambda: inspect_run_dir(config, run_dir),
        lambda: read_rows(run_dir, 2),
        lambda: find_runs([run_dir]),
        lambda: plain_lines(read_state(run_dir)),
        lambda: read_run_config(run_dir),
    ]

    def attempt(chance: random.Random) -> None:
        name = chance.choice(sorted(contents))
        mutate = mutate_json if name.endswith(".json") else mutate_bytes
        with damaged(run_dir / name, mutate(chance, contents[name])):
            chance.choice(readers)()
            if chance.random() < 0.01:  # drawing takes a while
                write_report([run_dir])

    bombard(0.1, attempt)
