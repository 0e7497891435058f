"""Checkpoints in two folders (checkpoint.mirror): losing the disk of one costs a round at most."""

import logging
from collections.abc import Callable
from pathlib import Path

from llcg_dist.job.checkpoint import CheckpointFiles
from llcg_dist.records.mirror import RecordsMirror

log = logging.getLogger(__name__)


class MirroredFiles(CheckpointFiles):
    """Checkpoints in a folder, and after it in a second one; the server's with the records that a run needs to go on.

    A mirror that cannot be written is no failure: it is told once, and tried again with every checkpoint.
    """

    def __init__(self, folder: Path, mirror: Path, owner: str, records: RecordsMirror | None = None) -> None:
        super().__init__(folder, owner)
        self._mirror, self._records, self._mirror_folder = CheckpointFiles(mirror, owner), records, mirror
        self._warning: str | None = None
        self._warned = False

    def rounds(self) -> list[int]:
        """Rounds with a complete file in either folder."""
        try:
            return sorted({*super().rounds(), *self._mirror.rounds()})
        except OSError as error:
            self._warn(error)
            return super().rounds()

    def read(self, round_: int) -> bytes:
        """From the mirror where only that has the round; the folder then gets its copy back."""
        if round_ in super().rounds():
            return super().read(round_)
        content = self._mirror.read(round_)
        try:
            super().write(round_, content)
        except OSError as error:
            log.warning("checkpoint of round %d not copied from %s: %s", round_, self._mirror_folder, error.strerror)
        return content

    def write(self, round_: int, content: bytes) -> None:
        """To both folders; the mirror is written even where the folder cannot be."""
        try:
            super().write(round_, content)
        finally:
            try:
                if self._records:
                    self._records.write()
                self._mirror.write(round_, content)
            except OSError as error:
                self._warn(error)

    def prune(self, durable_round: int, keep: int) -> None:
        super().prune(durable_round, keep)
        self._change_mirror(lambda: self._mirror.prune(durable_round, keep))

    def set_aside_after(self, round_: int) -> None:
        super().set_aside_after(round_)
        self._change_mirror(lambda: self._mirror.set_aside_after(round_))

    def remove_all(self) -> None:
        super().remove_all()
        self._change_mirror(self._mirror.remove_all)

    def mirror_records(self) -> None:
        """As they are when a run starts: until its first checkpoint the mirror would have those of a run before."""
        if self._records:
            self._change_mirror(self._records.write)

    def take_warning(self) -> list[str]:
        """Once, after a write of the mirror has failed."""
        warning, self._warning = self._warning, None
        return [warning] if warning else []

    def _change_mirror(self, change: Callable[[], None]) -> None:
        try:
            change()
        except OSError as error:
            self._warn(error)

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            self._warned = True
            self._warning = f"checkpoint.mirror={self._mirror_folder}: not written ({error.strerror or error})"
            log.warning(self._warning)


def open_files(folder: Path, mirror: str | None, owner: str, records: RecordsMirror | None = None) -> CheckpointFiles:
    """The checkpoints of one owner in a folder, and in checkpoint.mirror where that is set."""
    return MirroredFiles(folder, Path(mirror), owner, records) if mirror else CheckpointFiles(folder, owner)
