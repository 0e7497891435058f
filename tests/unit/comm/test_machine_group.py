"""Rows between machines over real Gloo connections within this process: sealed or not, the same rows arrive."""

from collections.abc import Mapping
from functools import partial
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from llcg_dist.comm.frame import SEAL_BYTES, SealError
from llcg_dist.comm.machine_group import MachineGroup
from llcg_dist.comm.session import Session, new_salt
from llcg_dist.errors import PeerLostError, PeerTimeoutError
from tests.helpers.gloo_threads import LIMIT, at_once, gloo_members
from tests.helpers.sessions import SCOPE

MACHINES = 3


class Home:
    """The rank around a machine group."""

    def __init__(self, rank: int) -> None:
        self.rank, self.round, self.received_bytes = rank, 4, 0

    def wait(self, *works: tuple[int, Any]) -> None:
        for _, work in works:
            work.wait(LIMIT)


class Flipping:
    """A group in which somebody flips a bit of what this machine sends last."""

    def __init__(self, group: Any) -> None:
        self._group = group

    def alltoall_base(self, incoming: Tensor, outgoing: Tensor, *sizes: Any) -> Any:
        outgoing[-20] ^= 4
        return self._group.alltoall_base(incoming, outgoing, *sizes)


@pytest.fixture(scope="module")
def members() -> list[Any]:
    return gloo_members(MACHINES)


def sessions() -> list[dict[int, Session]]:
    """By machine, those with the others by rank; part p is at rank p + 1."""
    found: list[dict[int, Session]] = [{} for _ in range(MACHINES)]
    for low, high in combinations(range(1, MACHINES + 1), 2):
        salts = new_salt(), new_salt()
        found[low - 1][high] = Session(SCOPE, (low, high), salts)
        found[high - 1][low] = Session(SCOPE, (high, low), salts[::-1])
    for of_machine in found:
        for rank, session in of_machine.items():
            session.part = rank - 1
    return found


def exchanged(members: list[Any], keys: list[Any], counts: list[list[int]]) -> tuple[list[Any], list[Home]]:
    """What every machine receives; counts[m][n] rows go from machine m to machine n."""
    homes = [Home(rank) for rank in range(1, MACHINES + 1)]
    groups = [MachineGroup(*each) for each in zip(homes, members, keys, strict=True)]

    def act(m: int) -> Tensor:
        sent = torch.arange(5 * sum(counts[m]), dtype=torch.float32).reshape(-1, 5) + 1000 * m
        return groups[m].all_to_all(sent, counts[m], [row[m] for row in counts])

    return at_once([partial(act, m) for m in range(MACHINES)]), homes


@pytest.mark.parametrize("counts", [[[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[0, 0, 2], [0, 3, 0], [1, 0, 0]]])
def test_sealed_rows_are_the_rows(members: list[Any], counts: list[list[int]]) -> None:
    plain, without = exchanged(members, [{}] * MACHINES, counts)
    sealed, with_seals = exchanged(members, sessions(), counts)
    for machine in range(MACHINES):
        assert torch.equal(plain[machine], sealed[machine])
        crossed = 20 * sum(counts[other][machine] for other in range(MACHINES) if other != machine)
        assert without[machine].received_bytes == crossed
        assert with_seals[machine].received_bytes == crossed + (MACHINES - 1) * SEAL_BYTES


def test_memory_is_used_again_for_smaller_and_larger_exchanges(members: list[Any]) -> None:
    keys: list[Mapping[int, Session]] = list(sessions())
    groups = [MachineGroup(Home(m + 1), members[m], keys[m]) for m in range(MACHINES)]
    for rows in (4, 1, 9):
        counts = [rows] * MACHINES
        sent = [torch.full((rows * MACHINES,), 10 * rows + m) for m in range(MACHINES)]
        found = at_once([partial(groups[m].all_to_all, sent[m], counts, counts) for m in range(MACHINES)])
        for received in found:
            assert received.tolist() == [10 * rows + m for m in range(MACHINES) for _ in range(rows)]


def test_a_row_that_is_changed_on_its_way_names_its_sender(members: list[Any]) -> None:
    tampered = [Flipping(members[0]), *members[1:]]
    found, _ = exchanged(tampered, sessions(), [[2] * MACHINES] * MACHINES)
    assert [type(result) for result in found] == [Tensor, Tensor, SealError]
    line = (
        "a message from rank 1 (part 0) is refused: it was not sealed with this job's key, or was changed or cut short"
    )
    assert str(found[2]) == line


@pytest.mark.parametrize(
    ("raised", "line"),
    [
        (PeerLostError("lost the connection to rank 0: closed"), "^lost the connection to another machine: "),
        (PeerTimeoutError("nothing heard from rank 2"), "^nothing heard from rank 2$"),
    ],
)
def test_who_is_blamed_where_an_exchange_ends(raised: PeerLostError, line: str) -> None:
    """The link that waits is the server's, which has nothing to do with it."""

    class LosesAnother(Home):
        def wait(self, *works: tuple[int, Any]) -> None:
            raise raised

    group: Any = SimpleNamespace(alltoall_base=lambda *_: None)
    with pytest.raises(type(raised), match=line):
        MachineGroup(LosesAnother(1), group, {}).all_to_all(torch.zeros(2, 2), [1, 1], [1, 1])
