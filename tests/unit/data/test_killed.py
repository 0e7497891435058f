"""kill -9 in every stage of ingest and cut, then the same settings again: the same store, byte for byte."""

import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.data.partition import ensure_store
from tests.helpers.killed_builds import STAGES
from tests.unit.data.datasets.test_large_files import LITTLE, bytes_of, write_npy


@pytest.mark.full
def test_a_kill_in_any_stage_leaves_no_store_and_the_next_build_has_the_same_bits(tmp_path: Path) -> None:
    settings = [
        "dataset=files", *write_npy(tmp_path), f"dataset.memory={LITTLE}", "partition=stream",
        "cluster.num_machines=2", "partition.order=parts", "partition.features_dtype=float16",
    ]  # fmt: skip
    expected, _ = ensure_store(load_config([*settings, f"partition.root={tmp_path}/expected"]))
    settings.append(f"partition.root={tmp_path}/parts")
    command = [sys.executable, "-m", "tests.helpers.killed_builds", str(tmp_path / "parts"), *settings]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (killed.returncode, killed.stdout.strip()) == (0, str(len(STAGES))), killed.stderr
    store, _ = ensure_store(load_config(settings))
    assert bytes_of(store) == bytes_of(expected)
    assert [path.name for path in (tmp_path / "parts").iterdir()] == [store.name]


WAITING = """
import sys
from pathlib import Path
from llcg_dist.data.metis import Metis
Metis("pymetis")._run(Path(sys.argv[1]), 2)
"""


def test_metis_ends_with_the_process_that_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "indptr.npy")  # reading it takes forever
    builder = subprocess.Popen([sys.executable, "-c", WAITING, str(tmp_path)])
    writer = _opened_for_writing(tmp_path / "indptr.npy", limit=60)
    builder.kill()
    builder.wait(timeout=10)
    poll = select.poll()
    poll.register(writer, 0)
    nobody_reads = poll.poll(20_000)  # milliseconds
    os.close(writer)
    assert nobody_reads


def _opened_for_writing(fifo: Path, limit: float) -> int:
    """The file descriptor, once somebody reads there."""
    deadline = time.monotonic() + limit
    while True:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
