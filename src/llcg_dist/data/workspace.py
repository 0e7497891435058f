"""Where a graph that is larger than memory is put together: a folder, and how much memory may be used."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from llcg_dist.data.host_memory import memory
from llcg_dist.data.progress_lines import ProgressLines


def _silent(line: str) -> None:
    pass


@dataclass(frozen=True)
class Workspace:
    """Arrays are built as .npy files of the folder and used memory-mapped."""

    folder: Path
    memory: int
    """Bytes for what is sorted or converted at a time. Besides, a few numbers are held for every node."""
    say: Callable[[str], None] = _silent

    def progress(self, what: str, total: int, unit: str) -> ProgressLines:
        return ProgressLines(what, total, unit, self.say)


def memory_for_loading(gigabytes: float | None) -> int:
    """The bytes of dataset.memory; by default a quarter of what is free."""
    return memory()[1] // 4 if gigabytes is None else round(gigabytes * 1e9)


@contextmanager
def use_workspace(given: Workspace | None, gigabytes: float | None) -> Iterator[Workspace]:
    """The workspace that is given; otherwise a temporary one for dataset.memory, whose files lose their names at the
    end. Arrays that are mapped from them stay readable."""
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="llcg-graph-") as folder:
        yield Workspace(Path(folder), memory_for_loading(gigabytes))
