"""Who is there: machines are lost and return, the server answers in their place, and the round's record says so."""

from collections.abc import Mapping, Sequence

import pytest
import torch

from llcg_dist.comm.channel import ServerChannel
from llcg_dist.comm.error_feedback import server_compressor
from llcg_dist.comm.ledger import Ledger
from llcg_dist.comm.loopback import LoopbackTransport
from llcg_dist.comm.members import Members
from llcg_dist.comm.messages import MESSAGES, Message, Train, Trained
from llcg_dist.errors import PeerLostError
from tests.helpers.fake_machines import PARAMETERS, Adds, machine_channels

SIZE = 3


class Losses:
    """{round: parts} without a machine, and with a new one."""

    def __init__(
        self,
        absent: Mapping[int, Sequence[int]],
        returned: Mapping[int, Sequence[int]],
        late: Mapping[int, Mapping[int, int]] | None = None,
    ) -> None:
        self._absent, self._returned, self._late = absent, returned, late or {}

    def gone(self, round_: int) -> Sequence[int]:
        return [part for part in self._absent.get(round_, []) if part not in self.lost(round_)]

    def lost(self, round_: int) -> Sequence[int]:
        return [part for part in self._absent.get(round_, []) if part not in self._absent.get(round_ - 1, [])]

    def returned(self, round_: int) -> Sequence[int]:
        return self._returned.get(round_, [])

    def late(self, round_: int) -> Mapping[int, int]:
        return self._late.get(round_, {})

    def answered_late(self, round_: int) -> Sequence[int]:
        return [part for part, since in self.late(round_ - 1).items() if self.late(round_).get(part) != since]


def scripted(script: Losses, least: int = 1) -> ServerChannel:
    """Three machines that add 1, 2 and 3; one that is back adds 10."""
    machines = machine_channels([Adds(1.0), Adds(2.0), Adds(3.0)], SIZE)
    transport = LoopbackTransport(machines, script, lambda part: machine_channels([Adds(10.0)], SIZE)[0])
    compressor = server_compressor("float32", torch.zeros(SIZE, dtype=torch.bool))
    return ServerChannel(transport, compressor, Ledger(PARAMETERS), MESSAGES, Members(3, least))


def rounds(channel: ServerChannel, count: int) -> list[dict[int, float]]:
    """{part: what its machine, or the server, added} of every round."""
    found = []
    for round_ in range(1, count + 1):
        channel.members.admit(channel.admit(round_))
        channel.send(Train(round_, torch.zeros(SIZE)))
        channel.stand_in()
        replies = channel.replies()
        found.append({reply.part: reply.vector[0].item() for reply in replies if reply.part is not None})
    return found


def test_a_machine_is_lost_and_returns() -> None:
    channel = scripted(Losses({2: [1], 3: [1]}, {4: [1]}))
    columns = []
    for round_, expected in enumerate([{0: 1, 1: 2, 2: 3}, {0: 1, 2: 3}, {0: 1, 2: 3}, {0: 1, 1: 10, 2: 3}], start=1):
        channel.members.admit(channel.admit(round_))
        channel.send(Train(round_, torch.zeros(SIZE)))
        assert {reply.part: reply.vector[0].item() for reply in channel.replies()} == expected
        columns.append(channel.members.take_columns())
    assert columns == [
        {},
        {"absent": [1], "lost": {"1": "as cluster.script says"}},
        {"absent": [1]},
        {"returned": [1]},
    ]


def test_the_server_answers_in_its_place_from_the_round_after_its_loss() -> None:
    channel = scripted(Losses({2: [0, 1], 3: [0, 1]}, {}))
    asked = []

    def substitute(part: int, request: Message, absent: int) -> Message:
        asked.append((part, request.round, absent))
        return Trained(request.round, request.vector + 100 + part, part=part)

    channel.substitute = substitute
    assert rounds(channel, 3) == [{0: 1, 1: 2, 2: 3}, {2: 3}, {0: 100, 1: 101, 2: 3}]
    assert asked == [(0, 3, 2), (1, 3, 2)]
    columns = channel.members.take_columns()
    assert (columns["absent"], columns["stood_in"], sorted(columns["lost"])) == ([0, 1], [0, 1], ["0", "1"])


def test_bytes_are_those_of_the_machines_that_are_there() -> None:
    channel = scripted(Losses({2: [1], 3: [1]}, {}))
    rounds(channel, 1)
    assert channel.ledger.end_round().bytes_up == 3 * 4 * SIZE
    for round_, (down, up) in {2: (3, 2), 3: (2, 2)}.items():
        channel.members.admit(channel.admit(round_))
        channel.send(Train(round_, torch.zeros(SIZE)))
        channel.replies()
        traffic = channel.ledger.end_round()
        assert (traffic.bytes_down, traffic.bytes_up) == (down * 4 * SIZE, up * 4 * SIZE)


@pytest.mark.parametrize(("least", "lost"), [(1, [0, 1, 2]), (2, [0, 2]), (3, [1])])
def test_a_job_with_too_few_machines_ends(least: int, lost: list[int]) -> None:
    channel = scripted(Losses({2: lost}, {}), least)
    with pytest.raises(
        PeerLostError, match=f"^{3 - len(lost)} of 3 machines are left, cluster.min_machines={least}: part"
    ):
        rounds(channel, 2)
