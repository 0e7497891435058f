"""All machines in the server's own process: for tests, for sweeps, and for methods whose only machine is rank 0."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from llcg_dist.comm.deadline import Deadline
from llcg_dist.comm.envelope import Packet
from llcg_dist.comm.machine_channel import MachineChannel


class Script(Protocol):
    """Which machines are lost, and when they are back."""

    def gone(self, round_: int) -> Sequence[int]:
        """Parts without a machine when the round begins."""

    def lost(self, round_: int) -> Sequence[int]:
        """Parts whose machines are lost in the round, and do not answer."""

    def returned(self, round_: int) -> Sequence[int]:
        """Parts whose machines begin the round with nothing of their own."""

    def late(self, round_: int) -> Mapping[int, int]:
        """Parts whose machines are still at work when the round ends, and the round that they work on."""

    def answered_late(self, round_: int) -> Sequence[int]:
        """Parts whose machines were late, and have answered when the round begins."""


class LoopbackTransport:
    """Machines take turns: each answers a request when the server waits for the replies."""

    parallel = False
    seal_bytes = 0  # nothing crosses a network

    def __init__(
        self,
        machines: Sequence[MachineChannel],
        script: Script | None = None,
        renewed: Callable[[int], MachineChannel] | None = None,
    ) -> None:
        """`script` loses machines and lets them return: then `renewed(part)` builds a part's machine anew."""
        self._machines, self.num_machines = list(machines), len(machines)
        self._script, self._renewed = script, renewed
        self.rank_of_part = list(range(1, 1 + len(machines)))
        self._packet: Packet | None = None
        self._asked: Sequence[int] = ()
        self._lost: list[int] = []
        self._round = 0
        self._gone: set[int] = set()
        self._late: dict[int, Packet] = {}
        """Answers that have not come yet."""
        self.deadline: Deadline | None = None  # who is late is the script's to say

    def send(self, packet: Packet, has_reply: bool, parts: Sequence[int]) -> None:
        """A request without a reply (the run is over) is handled at once: nobody waits for its answers."""
        self._packet, self._asked = packet if has_reply else None, parts
        if not has_reply:
            for part in parts:
                self._machines[part].answer(packet)

    def receive(self) -> dict[int, Packet]:
        assert self._packet is not None, "the server waits for replies to a request that has none"
        begun = self._packet.round == self._round  # what is restored before it is of the round before
        script = self._script if begun else None
        doomed, late = (script.lost(self._round), script.late(self._round)) if script else ((), {})
        answers = dict[int, Packet]()
        for part in self._asked:
            if part not in doomed:
                answer = self._machines[part].answer(self._packet)
                assert answer is not None
                self._machines[part].after_reply()
                answers[part] = answer
        self._lose(doomed)
        self._late |= {part: answers.pop(part).copied() for part in list(answers) if late.get(part) == self._round}
        return answers

    def take_late(self, round_: int, wait: bool) -> dict[int, Packet]:
        here = [part for part in self._script.answered_late(round_) if part in self._late] if self._script else []
        return {part: self._late.pop(part) for part in sorted(here or (self._late if wait else ()))}

    def _lose(self, parts: Sequence[int]) -> None:
        self._lost += parts
        self._gone |= set(parts)
        self._late = {part: packet for part, packet in self._late.items() if part not in parts}

    def take_losses(self) -> dict[int, str]:
        lost, self._lost = self._lost, []
        return {part: "as cluster.script says" for part in lost}

    def admit(self, round_: int) -> list[int]:
        if self._script is None:
            return []
        assert self._renewed is not None
        gone, back = set(self._script.gone(round_)), list(self._script.returned(round_))
        self._lose(sorted(gone - self._gone))
        self._gone, self._round = gone, round_
        for part in back:
            self._machines[part] = self._renewed(part)
            self._late.pop(part, None)
        return back
