"""A machine that begins while the others train: what it has to know of the job, and how it takes its part again."""

from dataclasses import asdict, dataclass
from typing import Any

from llcg_dist.comm.machine_channel import MachineChannel
from llcg_dist.errors import UserError
from llcg_dist.job.agreement import Identity, Offered, PartReport, require_same
from llcg_dist.job.handshake import Begin, Failed, Identify, MachineStart, Offer, Ready, TakePart, from_json, to_json
from llcg_dist.job.start import Start


@dataclass(frozen=True)
class Placed:
    """What the server has decided at the start of a job, in values that JSON has."""

    run_dir: str
    rank_of_part: list[int]
    """The rank that trains each part."""
    checksums: list[str]
    """Of the parts."""
    start: dict[str, Any]
    """A Start."""
    identity: dict[str, Any]
    """Of the server: what all ranks must have alike."""


def begin_again(machine: MachineStart, placed: Placed, part: int) -> MachineChannel:
    """Builds the machine of a part that has lost its own: by the questions of the handshake, which nobody has to ask.

    Raises UserError where the part is not there, or not what the job trains on, or the settings are others.
    """
    own, rank = _ask(machine, Identify(), Identity), placed.rank_of_part[part]
    require_same([*[Identity(**placed.identity)] * rank, own])
    _ask(machine, Offer(placed.run_dir), Offered)
    report = _ask(machine, TakePart(part, placed.rank_of_part), PartReport)
    if report.checksum != placed.checksums[part]:
        what = f"part {part} has checksum {report.checksum}, the job began with {placed.checksums[part]}"
        raise UserError(f"{what}; copy the part from the store that rank 0 uses")
    _ask(machine, Begin(asdict(Start(**placed.start).of_return(part))), Ready)
    assert machine.channel is not None
    return machine.channel


def _ask(machine: MachineStart, question: Any, expected: type[Any]) -> Any:
    reply = from_json(machine.answer(to_json(question)) or {})
    if isinstance(reply, Failed):
        raise UserError(reply.reason)
    assert isinstance(reply, expected)
    return reply
