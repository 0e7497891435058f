"""All machines in the server's own process: for tests, for sweeps, and for methods whose only machine is rank 0."""

from collections.abc import Sequence

from llcg_dist.comm.channel import MachineChannel
from llcg_dist.comm.envelope import Packet


class LoopbackTransport:
    """Machines take turns: each answers a request when the server waits for the replies."""

    parallel = False
    seal_bytes = 0  # nothing crosses a network

    def __init__(self, machines: Sequence[MachineChannel]) -> None:
        self._machines, self.num_machines = machines, len(machines)
        self.rank_of_part = list(range(1, 1 + len(machines)))
        self._packet: Packet | None = None

    def send(self, packet: Packet, has_reply: bool) -> None:
        """A request without a reply (the run is over) is handled at once: nobody waits for its answers."""
        self._packet = packet if has_reply else None
        if not has_reply:
            for machine in self._machines:
                machine.answer(packet)

    def receive(self) -> list[Packet]:
        assert self._packet is not None, "the server waits for replies to a request that has none"
        answers = []
        for machine in self._machines:
            answer = machine.answer(self._packet)
            assert answer is not None
            machine.after_reply()
            answers.append(answer)
        return answers
