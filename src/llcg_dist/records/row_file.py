"""metrics.jsonl as a file that grows by a line per round."""

import os
from collections.abc import Sequence
from pathlib import Path

from llcg_dist.data.atomic_files import write_bytes
from llcg_dist.records.rows import Row, row_line


class RowFile:
    """Appends rows. One that could not be written is written with the next, and half a line of it is removed first."""

    def __init__(self, path: Path, rows: Sequence[Row]) -> None:
        """Replaces the file, atomically, by one that holds these rows."""
        write_bytes(path, "".join(map(row_line, rows)).encode())
        self._file = path.open("r+b")
        self._written = len(rows)
        self._size = self._file.seek(0, os.SEEK_END)

    def append(self, rows: Sequence[Row]) -> None:
        """Writes those of all `rows` of the run that the file does not hold yet."""
        content = "".join(map(row_line, rows[self._written :])).encode()
        self._file.seek(self._size)
        self._file.truncate()
        self._file.write(content)
        self._file.flush()
        self._size += len(content)
        self._written = len(rows)

    def sync(self) -> None:
        """Waits until the rows are on the disk (fsync)."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()
