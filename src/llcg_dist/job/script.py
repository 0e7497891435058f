"""A run's losses, read from its records: cluster.script replays them on loopback."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from llcg_dist.errors import UserError


class RecordedLosses:
    """Which parts had no machine in which round, which had a new one, and whose were late."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = {row["round"]: row for row in rows}
        self.last_round = max(self._rows)

    def gone(self, round_: int) -> list[int]:
        """Parts without a machine when the round began."""
        return sorted(set(self.absent(round_)) - set(self.lost(round_)))

    def lost(self, round_: int) -> list[int]:
        """Parts whose machines were there when the round began, and sent nothing."""
        before, back = self.absent(round_ - 1), self.returned(round_)
        were_there = [part for part in self.absent(round_) if part not in before or part in back]
        return [part for part in were_there if part not in self._stood_in(round_)]

    def returned(self, round_: int) -> list[int]:
        """Parts whose machines began this round with nothing of their own."""
        row = self._row(round_)
        anew = [loss["part"] for loss in row.get("checkpoint_lost", [])]  # the whole run was started again
        return sorted({*row.get("returned", []), *anew} - {*self._stood_in(round_)})

    def absent(self, round_: int) -> list[int]:
        """Parts whose machines sent nothing in this round; after the last that is recorded, as in that one."""
        return self._row(min(round_, self.last_round)).get("absent", [])

    def late(self, round_: int) -> dict[int, int]:
        """Parts whose machines were still at work when the round ended, and the round that they worked on."""
        return {int(part): since for part, since in self._row(round_).get("late", {}).items()}

    def answered_late(self, round_: int) -> list[int]:
        """Parts whose machines were late, and had answered when the round began; after the last recorded one, all."""
        column = "late" if round_ > self.last_round else "answered_late"
        return [int(part) for part in self._row(min(round_, self.last_round)).get(column, {})]

    def _stood_in(self, round_: int) -> list[int]:
        return self._row(round_).get("stood_in", [])

    def _row(self, round_: int) -> Mapping[str, Any]:
        return self._rows.get(round_, {})


def read_script(path: Path, num_machines: int) -> RecordedLosses:
    """Of a metrics.jsonl; UserError where it is none, or of a job with more parts."""
    try:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        if not rows:
            raise ValueError("no rounds")
        recorded = RecordedLosses(rows)
        numbers = [row["round"] for row in rows]
        parts = [part for r in numbers for part in (*recorded.absent(r), *recorded.returned(r), *recorded.late(r))]
        if not all(isinstance(part, int) for part in parts):
            raise ValueError("a part is not a number")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"cluster.script={path}: not the metrics.jsonl of a run ({error})") from None
    if any(not 0 <= part < num_machines for part in parts):
        rule = f"loses part {max(parts)}, but cluster.num_machines={num_machines}"
        raise UserError(f"cluster.script={path}: {rule}; give the settings of the run that it is of")
    return recorded
