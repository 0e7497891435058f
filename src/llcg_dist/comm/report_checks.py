"""Checks of what machines reply before it is used: the length of the content, and every number of the report.

A machine that sends something else is at fault or lies. The run ends with one line that names it; no value is guessed.
"""

import math
from collections.abc import Sequence
from dataclasses import fields

from llcg_dist.comm.codec import Codec
from llcg_dist.comm.envelope import Packet
from llcg_dist.comm.ledger import Kind
from llcg_dist.comm.messages import Message, TrainStats
from llcg_dist.errors import TrainingError

_MAY_BE_ANY = {"train_loss"}
"""NaN and infinity are what an honest machine reports whose steps diverged."""
_LARGEST = 2.0**53
"""Whole numbers cross as float64, which holds them up to here."""
_ROUNDING = 1e-3
"""Seconds by which a difference of two clocks may lie below 0."""


def machine_names(rank_of_part: Sequence[int]) -> list[str]:
    return [f"rank {rank} (part {part})" for part, rank in enumerate(rank_of_part)]


def require_sizes(packets: Sequence[Packet], reply: type[Message], codec: Codec, names: Sequence[str]) -> None:
    """Raises TrainingError for a content that is shorter or longer than a reply of this class has."""
    for packet, name in zip(packets, names, strict=True):
        found = 0 if packet.content is None else packet.content.nbytes
        if reply.is_model:
            expected = codec.elements * codec.dtype.itemsize
        elif reply.kind is Kind.GRADIENTS:
            expected = 4 * (codec.size - len(codec.statistics))
        else:  # shorter ones are their method's
            expected = found if found % 4 == 0 and found <= 4 * codec.size else 4 * codec.size
        if found != expected:
            what = f"{found:,} bytes in round {packet.round}, where {reply.__name__} has {expected:,}"
            raise TrainingError(f"{name} sent {what}")


def require_reports(packets: Sequence[Packet], round_: int, names: Sequence[str]) -> None:
    """Raises TrainingError for the first number of a machine's report that cannot be."""
    for packet, name in zip(packets, names, strict=True):
        values = [] if packet.stats is None else packet.stats.tolist()
        if len(values) != len(fields(TrainStats)):
            raise TrainingError(f"{name} sent a report of {len(values)} numbers in round {round_}")
        for field, value in zip(fields(TrainStats), values, strict=True):
            rule = _broken_rule(field.name, field.type is int, value, round_)
            if rule:
                raise TrainingError(f"{name} reported {field.name}={value:g} in round {round_}, which {rule}")


def _broken_rule(name: str, is_whole: bool, value: float, round_: int) -> str | None:
    """What a number of a report is not and must be."""
    if name in _MAY_BE_ANY:
        return "is negative" if value < 0 else None
    most = {"checkpoint_failed": 1, "checkpoint_round": round_}.get(name, _LARGEST)
    if not math.isfinite(value):
        return "is no number"
    if is_whole and value != int(value):
        return "is not whole"
    if value < (0 if is_whole else -_ROUNDING):
        return "is negative"
    return f"is more than {most:g}" if value > most else None
