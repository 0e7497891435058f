"""Trains: in this process, or several jobs one after the other in the processes of a server and two machines."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from llcg_dist import train
from llcg_dist.config.compose import load_config
from llcg_dist.data.partition import ensure_store
from tests.helpers.jobs import REPOSITORY, Outcome, finish, start
from tests.helpers.known_parts import KNOWN_PARTS
from tests.helpers.run_files import messages, model_bytes, rows_without_times

FOUR_ROUNDS = ["cluster.num_machines=2", "num_rounds=4", "algorithm.K=3"]
TINY = ["experiment=tiny", *FOUR_ROUNDS]
"""A job of a second: 600 nodes, a server and two machines, four rounds of three local steps."""

Overrides = Sequence[str] | Mapping[int, Sequence[str]]
"""The settings of a job, or of each of its ranks."""


def cut(*overrides: str) -> Path:
    """The folder of the graph's parts, which is written now where it is not there yet."""
    store, _ = ensure_store(load_config(overrides))
    return store


def train_in_process(*overrides: str) -> None:
    """A job on loopback, in this process: the bits of real processes (tests/distributed/test_equivalence.py)."""
    config = load_config([*overrides, "cluster.backend=loopback"])
    with KNOWN_PARTS.of(config):
        train.run(config, train.Rank())


def on_loopback(root: Path, name: str, *overrides: str) -> Path:
    """The same in root/NAME, on the parts in root/parts; returns the run's folder."""
    train_in_process(f"partition.root={root}/parts", *overrides, f"run_dir={root}/{name}")
    return root / name


def in_ranks(root: Path, jobs: Mapping[str, Overrides]) -> Path:
    """Jobs of three ranks, each in root/NAME, on the parts in root/parts; returns root."""

    def complete(name: str, overrides: Sequence[str]) -> list[str]:
        return [f"partition.root={root}/parts", *overrides, f"run_dir={root}/{name}"]

    outcome, codes = train_in_ranks(
        root,
        [
            {rank: complete(name, own) for rank, own in overrides.items()}
            if isinstance(overrides, Mapping)
            else complete(name, overrides)
            for name, overrides in jobs.items()
        ],
    )
    assert codes == [0] * len(jobs), outcome.err
    return root


def train_in_ranks(
    folder: Path, jobs: Sequence[Overrides], leaks: Mapping[int, str] | None = None
) -> tuple[Outcome, list[int]]:
    """Jobs of three ranks, one after the other in the same processes: a rank takes seconds to import torch and DGL.

    `leaks` names, by the number of a job, how it sends bytes past the channel (tests/helpers/ranks/leaks.py), or what
    is done to its messages on their way (tests/helpers/ranks/tampering.py). Returns what the ranks printed, and rank
    0's exit code of each job.
    """
    file = folder / "jobs.json"
    file.write_text(json.dumps([{"overrides": job, "leak": (leaks or {}).get(i)} for i, job in enumerate(jobs)]))
    outcome = finish(start([sys.executable, "-m", "tests.helpers.ranks.several", str(file)], REPOSITORY))
    assert outcome.code == 0, outcome.err
    return outcome, json.loads(Path(f"{file}.codes").read_text())


def opened_files(run_dir: Path, rank: int) -> list[Path]:
    """What this rank opened while it took part in a job of `in_ranks`."""
    return [Path(name) for name in json.loads(Path(f"{run_dir}.opened.{rank}.json").read_text())]


def assert_loopback_equals_ranks(root: Path, name: str, *overrides: str) -> None:
    """Runs the job root/NAME once more, on loopback: model, records and bytes are the same to the last digit."""
    looped = on_loopback(root, f"loopback_{name}", *overrides)
    assert model_bytes(looped) == model_bytes(root / name)
    assert rows_without_times(looped) == rows_without_times(root / name)
    assert messages(looped) == messages(root / name)
