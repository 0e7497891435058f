"""From which round a run goes on, and what that costs.

A round that every rank has is exact: the run ends with the bits of an undisturbed one. Where a machine has lost what it
saved, or was gone itself, a round of the server's is: it holds the model, and the machine loses only what nobody else
knows.
"""

from collections.abc import Callable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from llcg_dist.config.schema import Config, Resume
from llcg_dist.errors import UserError
from llcg_dist.records.starts import read_starts, started_by_this_launch

Row = dict[str, Any]


def starts_over(config: Config, run_dir: Path) -> bool:
    """Whether the user asks for a start from nothing. A restart of a job that did so goes on."""
    return config.resume == Resume.fresh and not started_by_this_launch(run_dir)


def choose_round(
    server: Sequence[int],
    parts: Sequence[Sequence[int]],
    rows: Sequence[Row],
    absent: Callable[[int], Sequence[int]] = lambda round_: (),
) -> tuple[int, list[int]]:
    """The round to go on after (0: none), and the parts that have lost their state of it: the newest round of the
    server that costs the fewest parts theirs.

    `server`, `parts`: the rounds of which each has a complete checkpoint; `rows` of metrics.jsonl. `absent(round)`:
    parts whose machines were gone in a round of the server. What such a machine may have saved is not the run's.
    """
    if not server:
        return 0, []
    gone = {r: set(absent(r)) for r in server}
    lost = {r: [p for p, rounds in enumerate(parts) if r not in rounds or p in gone[r]] for r in server}
    chosen = min(server, key=lambda round_: (len(lost[round_]), -round_))
    if lost[chosen] and max(server) == min(server) and len(rows) <= chosen and _durable_round(rows) == 0:
        return 0, []  # the first checkpoint of all: killed before every machine had written it, and nothing is lost
    return chosen, lost[chosen]


def refuse_to_start_over(
    config: Config, run_dir: Path, parts: Sequence[Sequence[int]], rows: Sequence[Row], is_new: bool
) -> None:
    """Where no round can be gone on from: raises UserError if one could have been, so that its checkpoints are lost.

    Before the server's first checkpoint was written, a machine may have its first two.
    """
    newest = max((round_ for rounds in parts for round_ in rounds), default=0)
    begun = newest > (0 if is_new else 2 * max(1, config.checkpoint.every))
    if _durable_round(rows) or begun:
        reached = max(len(rows), newest)
        lost = f"run_dir={run_dir}: the run was at round {reached}, and the server's checkpoints are gone or damaged"
        mirror = f" (checkpoint.mirror={config.checkpoint.mirror} has none either)" if config.checkpoint.mirror else ""
        raise UserError(f"{lost}{mirror}; put them back in checkpoint.dir, or start over with resume=fresh")


def losses(parts: Sequence[int], round_: int, state: Sequence[str]) -> list[Row]:
    """What these parts have lost, for starts.json; `state` is Algorithm.machine_state."""
    return [{"part": part, "round": round_, "state": list(state)} for part in parts]


def losses_at(round_: int, run_dir: Path, losses_now: Sequence[Row]) -> list[Row]:
    """What the round after this one begins without: what is lost at this start, and at those just before it from the
    same round, which ended before the next was saved by all."""
    starts = takewhile(lambda start: start.get("after_round") == round_, reversed(read_starts(run_dir)))
    earlier = [loss for start in starts for loss in start.get("lost", [])] if round_ else []
    return list({loss["part"]: loss for loss in [*earlier, *losses_now]}.values())


def _durable_round(rows: Sequence[Row]) -> int:
    """The newest round that every rank had on its disk, by the records."""
    return max((row.get("checkpoint_round") or 0 for row in rows), default=0)
