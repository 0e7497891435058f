"""A host that comes while its job goes on without some machines: it takes their places, and nobody else stops."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from llcg_dist.cli.launch.attendance import Attendance
from llcg_dist.comm.running_job import Place, RunningJob, running_job
from llcg_dist.errors import UserError
from llcg_dist.records.console import say

_SETTLE_SECONDS = 3.0
"""The server finds the machines of a host gone one after the other: how long a host waits for as many as it starts."""
_NOTICE_SECONDS = 5.0
"""How much longer than cluster.timeout it may take until the server says that a silent machine is gone."""
_POLL_SECONDS = 0.2


@dataclass
class Joining:
    """What a host brings that was told to start processes of a job."""

    store: object
    """The job's, sealed where it has a key."""
    attendance: Attendance
    here: int
    """How many processes it shall start."""
    parts: frozenset[int]
    """On its disk."""
    seconds: float
    """cluster.timeout: as long as the server may take to find a silent machine gone."""
    _since: float | None = field(default=None, init=False)

    def place(self, hosts_meet: Callable[[], bool]) -> Place | None:
        """The ranks that this host takes over; None: it shall meet the other hosts, as where these meet already. Raises
        UserError where the job runs and needs no host: if one met the others, all of them would stop and start anew."""
        job = running_job(self.store)
        if job is None:
            return None
        end = time.monotonic() + self.seconds + _NOTICE_SECONDS
        first_beat, is_served = job.beat(), False
        while not job.is_over and not hosts_meet():
            is_served = is_served or job.beat() != first_beat
            is_last = time.monotonic() > end
            found = self._claim(job, is_last) if is_served else None
            if found:
                return found
            if is_last:
                if not is_served:  # its host is gone too, and the others wait for a new start
                    return None
                raise UserError(self._refusal(job.absent()))
            time.sleep(_POLL_SECONDS)
        return None

    def _claim(self, job: RunningJob, is_last: bool) -> Place | None:
        free = [rank for rank, part in job.absent().items() if part in self.parts and self._is_free(job.holder(rank))]
        if not free:
            self._since = None
            return None
        self._since = self._since or time.monotonic()
        if len(free) < self.here and time.monotonic() - self._since < _SETTLE_SECONDS and not is_last:
            return None
        place = job.claim(free, self.here, self.attendance.number, self.attendance.is_gone)
        if place:
            parts = ", ".join(str(part) for rank, part in job.absent().items() if rank in place.ranks)
            rest = f"; --here={self.here} is more than it needs" if len(place.ranks) < self.here else ""
            say(f"the job goes on without a machine of part {parts}: this host takes its place{rest}")
        return place

    def _is_free(self, holder: int | None) -> bool:
        return holder is None or self.attendance.is_gone(holder)

    def _refusal(self, absent: dict[int, int]) -> str:
        waited = f"({self.seconds + _NOTICE_SECONDS:g} s waited)"
        if not absent:
            return f"the job runs, and none of its machines is gone {waited}; it needs no further host"
        parts = ", ".join(map(str, absent.values()))
        if not self.parts & set(absent.values()):
            return f"partition.root: part {parts} has no machine, and this host has no copy of it; copy it here"
        return f"part {parts} has no machine, but another host takes its place already {waited}"
