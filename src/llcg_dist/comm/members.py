"""Which parts have a machine, round by round: who is lost, who is back, and who is stood in for."""

import logging
from collections.abc import Iterable
from typing import Any

from llcg_dist.errors import PeerLostError
from llcg_dist.stopwatch import Elapsed

log = logging.getLogger(__name__)


class Members:
    """The machines of a job by part. All are there at the start; on_loss=go_on goes on with those that are left."""

    def __init__(self, num_machines: int, least: int = 1) -> None:
        """`least`: cluster.min_machines."""
        self._num_machines, self._least = num_machines, least
        self.present = list(range(num_machines))
        """Parts with a machine, in order."""
        self.late: dict[int, int] = {}
        """Those whose machines are still at work on an earlier request, and its round."""
        self._answered_late: dict[int, int] = {}
        self._lost: dict[int, str] = {}
        self._returned: list[int] = []
        self.note_stand_in([], Elapsed())

    @property
    def absent(self) -> list[int]:
        """Parts without a machine, in order."""
        return sorted(set(range(self._num_machines)) - set(self.present))

    @property
    def free(self) -> list[int]:
        """Parts whose machine can be asked, in order."""
        return [part for part in self.present if part not in self.late]

    @property
    def missing(self) -> list[int]:
        """Parts without a machine that can be asked, in order."""
        return sorted({*self.absent, *self.late})

    def fall_behind(self, parts: Iterable[int], round_: int) -> None:
        """The round ends without these; its request stays theirs until they have answered."""
        for part in parts:
            log.warning("round %d ends without part %d, which is late", round_, part)
            self.late[part] = round_

    def catch_up(self, parts: Iterable[int]) -> None:
        """These were late and have answered."""
        self._answered_late |= {part: self.late.pop(part) for part in parts}

    def lose(self, reasons: dict[int, str]) -> None:
        """These parts ({part: why}) have no machine any more; raises PeerLostError where too few are left."""
        for part, why in reasons.items():
            log.warning("part %d is lost: %s", part, why)
        lost = {part: why for part, why in reasons.items() if part in self.present}  # others were about to return
        self.present = [part for part in self.present if part not in lost]
        self.late = {part: round_ for part, round_ in self.late.items() if part not in lost}
        self._lost |= lost
        if lost and len(self.present) < self._least:
            left = f"{len(self.present)} of {self._num_machines} machines are left, cluster.min_machines={self._least}"
            raise PeerLostError(f"{left}: {'; '.join(f'part {part}: {why}' for part, why in reasons.items())}")

    def admit(self, parts: Iterable[int]) -> None:
        """These have a machine again, which begins with nothing of its own."""
        for part in parts:
            log.warning("part %d is back", part)
            self.present = sorted({*self.present, part})
            self.late.pop(part, None)
            self._returned.append(part)

    def note_stand_in(self, parts: Iterable[int], took: Elapsed) -> None:
        """The server has taken these parts' steps of this round, all together in this time."""
        self._stood_in, self._standing_in = sorted(parts), took

    def take_columns(self) -> dict[str, Any]:
        """What the round's record says, once, at its end; nothing where all machines took part as ever.

        A replay follows `absent`, `returned`, `late` and `answered_late` (job/script.py)."""
        columns = {
            "absent": self.absent,
            "lost": {str(part): why for part, why in sorted(self._lost.items())},
            "returned": sorted(self._returned),
            "stood_in": self._stood_in,
            "seconds_stand_in": self._standing_in.seconds,
            "cpu_stand_in": self._standing_in.cpu,
            "late": _by_name(self.late),
            "answered_late": _by_name(self._answered_late),
        }
        self._lost, self._returned, self._answered_late = {}, [], {}
        self.note_stand_in([], Elapsed())
        return {name: value for name, value in columns.items() if value}


def _by_name(rounds: dict[int, int]) -> dict[str, int]:
    """As JSON has it, which the keys of must be text."""
    return {str(part): round_ for part, round_ in sorted(rounds.items())}
