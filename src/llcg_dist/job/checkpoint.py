"""Checkpoints: each rank saves its own state; a round can be resumed from once every rank has a complete file of it.

    <checkpoint.dir>/server-r000012-<sha256>.pt     model, best model, optimiser, byte counts, open records
    <checkpoint.dir>/part0-r000012-<sha256>.pt      a machine's optimiser, buffers, method; on its host
    <checkpoint.dir>/part0-r000013-<sha256>.pt.aside    of a round after the one that the run went on from

A file carries the hash of its content in its name and takes that name only when it is on the disk: one that is there
and matches is complete. There is no random state to save: all randomness is derived from (seed, part, round).
"""

import concurrent.futures
import contextlib
import hashlib
import io
import logging
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from llcg_dist.config.run_format import stamped, take_format
from llcg_dist.errors import UserError, first_line

log = logging.getLogger(__name__)

_HASH_LENGTH = 16
_ASIDE = ".aside"
SERVER_OWNER = "server"


def part_owner(part: int) -> str:
    return f"part{part}"


def parts_with_checkpoints(folder: Path) -> list[int]:
    """The parts of which a folder has checkpoints, by their names alone."""
    names = (re.match(r"part(\d+)-r", path.name) for path in folder.glob("part*-r*.pt"))
    return sorted({int(name[1]) for name in names if name})


class CheckpointFiles:
    """The checkpoints of one owner (the server, or a part) in a folder."""

    def __init__(self, folder: Path, owner: str) -> None:
        self._folder, self._owner = folder, owner
        self._name = re.compile(rf"{re.escape(owner)}-r(\d+)-([0-9a-f]{{{_HASH_LENGTH}}})\.pt")

    def rounds(self) -> list[int]:
        """Rounds with a complete file, ascending; torn or altered files are ignored."""
        return sorted(round_ for round_, path in self._named() if self._read(path) is not None)

    def load(self, round_: int) -> dict[str, Any]:
        return _decode(f"{self._folder}: checkpoint of {self._owner} for round {round_}", self.read(round_))

    def read(self, round_: int) -> bytes:
        """The content of a complete file of this round; UserError where there is none."""
        for found, path in self._named():
            content = self._read(path) if found == round_ else None
            if content is not None:
                return content
        raise UserError(f"{self._folder}: the checkpoint of {self._owner} for round {round_} is gone; start again")

    def write(self, round_: int, content: bytes) -> None:
        """Atomic: leaves the complete file or nothing."""
        self._folder.mkdir(parents=True, exist_ok=True)
        stage = self._folder / f".{self._owner}.tmp"
        try:
            with stage.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            stage.replace(self._folder / f"{self._owner}-r{round_:06d}-{_hash(content)}.pt")
        except OSError:
            stage.unlink(missing_ok=True)
            raise

    def prune(self, durable_round: int, keep: int) -> None:
        """Removes all but the `keep` newest rounds; never the newest that every rank has, nor one after it.

        A round after `durable_round` counts too, although not every rank may have it yet: another rank's file of it
        may be the last that is missing. A file that was set aside goes when every rank has its round again.
        """
        rounds = sorted({round_ for round_, _ in self._named()}, reverse=True)
        whole = max((round_ for round_ in rounds if round_ <= durable_round), default=0)
        removed = [round_ for round_ in rounds[keep:] if round_ < whole]
        for round_, path in self._named():
            if round_ in removed:
                path.unlink(missing_ok=True)
        for round_, path in self._named(_ASIDE):
            if round_ <= durable_round:
                path.unlink(missing_ok=True)

    def set_aside_after(self, round_: int) -> None:
        """Renames the files of rounds that are about to be repeated: the run may end before it has made them again."""
        for found, path in self._named():
            if found > round_:
                path.rename(path.with_name(path.name + _ASIDE))

    def remove_all(self) -> None:
        """For a run that starts over because it was told to."""
        for _, path in [*self._named(), *self._named(_ASIDE)]:
            path.unlink(missing_ok=True)

    def mirror_records(self) -> None: ...

    def take_warning(self) -> list[str]:
        """What the user should know about where the files lie; once."""
        return []

    def _named(self, suffix: str = "") -> list[tuple[int, Path]]:
        if not self._folder.is_dir():
            return []
        names = ((path.name, path) for path in self._folder.iterdir() if path.name.endswith(suffix))
        matches = ((self._name.fullmatch(name.removesuffix(suffix)), path) for name, path in names)
        return [(int(match[1]), path) for match, path in matches if match]

    def _read(self, path: Path) -> bytes | None:
        content = path.read_bytes()
        return content if path.name.endswith(f"-{_hash(content)}.pt") else None


class CheckpointWriter:
    """Writes and removes checkpoints in the background: what holds up a round is copying the state, not the disk."""

    _all: "set[CheckpointWriter]" = set()
    """Those of the job that this process runs."""

    def __init__(self, files: CheckpointFiles, every: int, keep: int, last_round: int, durable_round: int = 0) -> None:
        self._files, self._every, self._keep, self._last_round = files, every, keep, last_round
        self._pool = concurrent.futures.ThreadPoolExecutor(max_workers=1)
        self._last_task: concurrent.futures.Future[None] | None = None
        self.durable_round = durable_round
        """The newest round that this rank has safely on its disk."""
        self.problem: str | None = None
        """Why the last write failed, if it did; training goes on with the checkpoints there are."""
        self.seconds = 0.0
        self.bytes = 0
        CheckpointWriter._all.add(self)

    @staticmethod
    def finish_all() -> None:
        """For a process that is about to end: waits until all files under way are written."""
        for saver in list(CheckpointWriter._all):
            saver.finish()

    @staticmethod
    def saved_by_all() -> int:
        """The newest round that all writers of this process have on disk; 0 where there are none."""
        return min((writer.durable_round for writer in CheckpointWriter._all), default=0)

    @staticmethod
    def prune_all(durable_round: int) -> None:
        """At the end of a job, where every rank is known to have its last round: keeps no more than `keep` of all."""
        for writer in list(CheckpointWriter._all):
            writer.prune(durable_round)
            writer.finish()

    @staticmethod
    def forget_all() -> None:
        """Before a job: this process may have run another."""
        CheckpointWriter._all.clear()

    def save(self, round_: int, state: Callable[[], dict[str, Any]], before: Callable[[], None] = lambda: None) -> None:
        """Where one is due, copies the state and starts to write it, after it has called `before` in the background.

        First it waits for the write before: so `durable_round` then tells of every round that was saved until now.
        """
        started = time.perf_counter()
        self.finish()
        self.seconds, self.bytes = 0.0, 0
        if self._every == 0 or (round_ % self._every and round_ != self._last_round):
            return
        self.bytes = self.save_anyway(round_, state, before)
        self.seconds = time.perf_counter() - started

    def save_anyway(
        self, round_: int, state: Callable[[], dict[str, Any]], before: Callable[[], None] = lambda: None
    ) -> int:
        """Saves a round, due or not; returns the bytes."""
        buffer = io.BytesIO()
        torch.save(stamped(state()), buffer)
        content = buffer.getvalue()
        self._last_task = self._pool.submit(self._write, round_, content, before)
        return len(content)

    def restart_at(self, round_: int, state: Callable[[], dict[str, Any]]) -> None:
        """The owner begins anew with this state, as that of a round: files of it and of later ones are set aside."""
        if self._every and round_:
            self.finish()
            self._files.set_aside_after(round_ - 1)
            self.save_anyway(round_, state)
            self.finish()

    def prune(self, durable_round: int) -> None:
        self._last_task = self._pool.submit(self._prune, durable_round)

    def finish(self) -> None:
        """Waits until nothing is being written or removed."""
        if self._last_task is not None:
            self._last_task.result()  # tasks run one after the other: those before it are done
            self._last_task = None

    def _prune(self, durable_round: int) -> None:
        try:
            self._files.prune(durable_round, self._keep)
        except OSError as error:
            log.warning("old checkpoints not removed: %s", error.strerror or error)

    def _write(self, round_: int, content: bytes, before: Callable[[], None]) -> None:
        try:
            before()
            self._files.write(round_, content)
        except Exception as error:  # nobody asks this thread's task what it raised
            reason = (error.strerror if isinstance(error, OSError) else None) or first_line(error)
            self.problem = f"checkpoint of round {round_} not written: {reason}"
            log.warning(self.problem)
        else:
            self.durable_round, self.problem = round_, None


def _decode(name: str, content: bytes) -> dict[str, Any]:
    """Tensors, numbers and lists only: a file that holds anything else is refused, not executed."""
    try:
        # A GPU's tensors, too: the host that goes on may have another, or none.
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged archive raises almost anything
        raise UserError(f"{name}: not a checkpoint ({type(error).__name__}); remove it and start again") from None
    if not isinstance(state, dict):
        raise UserError(f"{name}: not a checkpoint; remove it and start again")
    take_format(state, name)
    return state


@contextlib.contextmanager
def explain_misfit(owner: str, round_: int) -> Iterator[None]:
    """Turns the errors of loading a state that has another shape into a UserError: the file is the user's to remove."""
    try:
        yield
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        reason = first_line(error)
        raise UserError(f"checkpoint of {owner}, round {round_}: does not fit this run ({reason}); remove it") from None


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_HASH_LENGTH]
