"""A few rounds of each candidate on loopback, in a folder that is removed afterwards."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from llcg_dist.advise.decision import Curve, affordable_rounds, evaluate_every
from llcg_dist.config.compose import load_config, quoted_override
from llcg_dist.config.schema import Config
from llcg_dist.errors import UserError
from llcg_dist.job.process import Rank
from llcg_dist.job.restored_state import state_restored
from llcg_dist.job.run import run
from llcg_dist.records.cluster_time import link_seconds, round_seconds
from llcg_dist.records.columns import sent_bytes
from llcg_dist.records.rows import Row, read_rows

_PROBE_ROUNDS = 3
"""The fastest of them counts: in the first, and in one that waits for its evaluation, much is done only once."""
_FEWEST_ROUNDS, _MOST_ROUNDS = 4, 60
_QUIET = ["cluster.backend=loopback", "checkpoint.every=0", "logger=none", "verify=sizes", "resume=never"]
_SETTINGS = ["early_stop.patience=0", "diagnostics.every=0"]
LLCG = "LLCG"
_PLUS = ["algorithm=llcg_plus"]
_FEWER_STEPS = 4


@dataclass(frozen=True)
class Candidate:
    """A way to train that the pilot tries."""

    name: str
    alone: bool
    overrides: list[str]
    """What it asks for where the user has not set it."""
    batch: int | None = None
    """train.local_batch_size of this pilot, whatever the user has set; None: the user's."""

    def settings(self, overrides: Sequence[str]) -> list[str]:
        """With the user's overrides."""
        batch = [] if self.batch is None else [f"train.local_batch_size={self.batch}"]
        return [*self.overrides, *overrides, *batch]


@dataclass(frozen=True)
class Trial:
    """What the pilot of a candidate left."""

    candidate: Candidate
    rows: list[Row]
    model: dict[str, Tensor]

    @property
    def local_seconds(self) -> float:
        """Of the machines' steps in the last round."""
        return max((seconds for seconds in self.rows[-1]["cpu_local_by_part"] if seconds is not None), default=0.0)

    def curve(self, link_mbit: float) -> Curve:
        alone, seconds, clock = self.candidate.alone, 0.0, list[float]()
        for row in self.rows:
            seconds += round_seconds(row, alone, link_mbit)
            clock.append(seconds)
        last, name = self.rows[-1], self.candidate.name
        on_link = 0.0 if alone else link_seconds(last, len(last["cpu_local_by_part"]), link_mbit)
        scores = [row["val_score"] or 0.0 for row in self.rows]
        return Curve(name, alone, clock, scores, float(sent_bytes(last)), on_link, self.candidate.settings([]))


def candidates(config: Config) -> list[Candidate]:
    """One machine with the batches of one and of all machines, and LLCG with all that llcg_plus brings."""
    machines, batch = config.cluster.num_machines, config.train.local_batch_size
    small = max(1, batch // machines)  # single takes P times the batch of a machine
    one = Candidate("one machine", True, ["algorithm=single"], small)
    if machines == 1:
        return [one]
    large = Candidate(f"one machine with batches of {batch * machines}", True, ["algorithm=single"])
    return [one, large, Candidate(LLCG, False, _PLUS)]


def longer_rounds(local_steps: float) -> Candidate:
    """LLCG that does more of its work at the machines: several times the local steps, and a quarter of the
    correction."""
    steps = round(local_steps)
    return Candidate(f"{LLCG}, K = {steps}", False, [*_PLUS, f"algorithm.K={steps}", f"algorithm.S={_FEWER_STEPS}"])


def on_balanced_parts(candidate: Candidate) -> Candidate:
    """The same on METIS parts balanced in their training labels, which cut fewer edges than clusters do."""
    parts = ["partition=metis", "partition.balance=labels"]
    return Candidate(f"{candidate.name}, METIS", False, [*candidate.overrides, *parts])


def try_candidate(candidate: Candidate, overrides: Sequence[str], seconds: float) -> Trial:
    """Trains it for about so many seconds."""
    settings = candidate.settings(overrides)
    probe = _rounds(candidate, settings, _PROBE_ROUNDS, every=1).rows
    if all(row["val_score"] is None for row in probe):
        source = load_config(settings).dataset.described
        raise UserError(f"{source}: without validation nodes there is no score to compare by; split off some")
    training, evaluating = (min(row[key] for row in probe) for key in ("seconds_round", "seconds_evaluate"))
    every = evaluate_every(training, evaluating)
    rounds = affordable_rounds(seconds, training + evaluating / every, _FEWEST_ROUNDS, _MOST_ROUNDS)
    return _rounds(candidate, settings, rounds, every)


def _rounds(candidate: Candidate, settings: Sequence[str], rounds: int, every: int) -> Trial:
    with tempfile.TemporaryDirectory(prefix="llcg_advise_") as folder:
        run_dir = Path(folder) / "run"
        fixed = [
            *_QUIET,
            *_SETTINGS,
            f"num_rounds={rounds}",
            f"evaluate.every={every}",
            quoted_override("run_dir", str(run_dir)),
        ]
        with state_restored(), _silent():
            run(load_config([*settings, *fixed]), Rank())
        model: dict[str, Any] = torch.load(run_dir / "model.pt", weights_only=True)
        return Trial(candidate, read_rows(run_dir, rounds), model)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """A job tells the terminal about its rounds; a pilot's are nobody's business."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield
