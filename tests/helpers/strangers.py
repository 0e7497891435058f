"""Someone who can reach the store of a job and does not have its key: another user of the host, or another host."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.helpers.jobs import BIN, REPOSITORY, Job, printed, start, wait_until

_SCRIPT = REPOSITORY / "tests" / "helpers" / "ranks" / "stranger.py"


def as_nobody(*command: str) -> list[str]:
    """The command as the user nobody, without any privilege; skips the test where that cannot be."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("running a command as another user needs root and setpriv")
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--"]
    if subprocess.run([*nobody, "test", "-r", str(_SCRIPT)], timeout=60).returncode != 0:
        pytest.skip(f"the user nobody cannot read {REPOSITORY}")
    return [*nobody, *command]


class Stranger:
    """A process that poisons a store over and over (tests/helpers/ranks/stranger.py), once it knows where it is."""

    def __init__(self, folder: Path, command: Callable[..., Sequence[str]]) -> None:
        """`command` makes its command line from the program and its arguments: as whom, or where, it runs."""
        self._where, self._marks = folder / "where", folder / "marks"
        self._marks.mkdir()
        folder.chmod(0o755)
        self._process = start(command(str(BIN / "python"), str(_SCRIPT), str(self._where), str(self._marks / "ran")))

    def poison(self, host: str, port: int, passes: int, *jobs: Job) -> None:
        """Goes over the store so many times while the jobs run, then ends."""
        unfinished = self._where.with_suffix(".new")
        unfinished.write_text(f"{host} {port}")
        unfinished.rename(self._where)
        try:
            wait_until(lambda: printed(self._process)[0].count("keys") >= passes, self._process, *jobs)
        finally:
            self.end()
        assert int(printed(self._process)[0].split()[0]) > 10  # it found them all

    def executed(self) -> list[str]:
        """The pickles of its that somebody has run."""
        return [path.name for path in self._marks.iterdir()]

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def stranger(command: Callable[..., Sequence[str]]) -> Iterator[Stranger]:
    """A stranger who is gone afterwards. It has a folder that anybody can open, which those of pytest are not."""
    with tempfile.TemporaryDirectory(prefix="llcg-stranger-") as folder:
        somebody = Stranger(Path(folder), command)
        try:
            yield somebody
        finally:
            somebody.end()
