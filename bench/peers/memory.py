"""The most memory that the processes of each host have held at a time."""

import contextlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.helpers.netns import Host


class PeakMemory:
    """Of network namespaces: the sum over their processes, pages that several share counted once (Pss), in MB."""

    def __init__(self, found: Sequence[Host]) -> None:
        self._hosts, self.peaks = found, [0.0] * len(found)

    def look(self) -> None:
        for place, host in enumerate(self._hosts):
            listed = subprocess.run(["ip", "netns", "pids", host.name], check=True, capture_output=True, text=True)
            self.peaks[place] = max(self.peaks[place], sum(map(_held, listed.stdout.split())))


def _held(pid: str) -> float:
    with contextlib.suppress(OSError):  # it may have ended
        for line in (Path("/proc") / pid / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0
