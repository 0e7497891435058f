"""A second copy of the records that a run needs to go on (checkpoint.mirror), in case the server loses its disk.

<checkpoint.mirror>/config.yaml, starts.json, metrics.jsonl     as in the run directory
<checkpoint.mirror>/server-r000012-<sha256>.pt                  written by job/mirrored_files.py
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from llcg_dist.data.atomic_files import write_bytes
from llcg_dist.records.reading import readable_rows
from llcg_dist.records.row_file import RowFile
from llcg_dist.records.rows import Row

_COPIED = ("config.yaml", "starts.json")


class RecordsMirror:
    """Takes copies of records as they are made, and writes them when a checkpoint is written, in the same thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._contents: dict[str, bytes] = {}
        self._rows: list[Row] = []
        self._row_file: RowFile | None = None

    def put(self, name: str, content: bytes) -> None:
        """The content of a file, to be written next."""
        if name in _COPIED:
            self._contents[name] = content

    def put_rows(self, rows: Sequence[Row]) -> None:
        """All rows so far, to be written next."""
        self._rows = list(rows)

    def write(self) -> None:
        """Raises OSError where that fails; the next call writes what this one could not."""
        rows = self._rows
        self._folder.mkdir(parents=True, exist_ok=True)
        for name, content in list(self._contents.items()):
            write_bytes(self._folder / name, content)
            if self._contents.get(name) is content:  # no newer one came meanwhile
                del self._contents[name]
        if self._row_file is None:
            self._row_file = RowFile(self._folder / "metrics.jsonl", rows)
        self._row_file.append(rows)
        self._row_file.sync()


def restore_records(mirror: Path, run_dir: Path) -> list[str]:
    """Copies what the run directory has lost from the mirror; the names of the files."""
    restored = [name for name in _COPIED if (mirror / name).exists() and not (run_dir / name).exists()]
    if len(readable_rows(mirror)) > len(readable_rows(run_dir)):
        restored.append("metrics.jsonl")
    for name in restored:
        shutil.copyfile(mirror / name, run_dir / name)
    return restored
