"""The machines among themselves, ranks 1..P of the job: what they exchange without the server."""

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, Protocol

import torch
from torch import Tensor

from llcg_dist.comm.frame import SEAL_BYTES, Label
from llcg_dist.comm.ledger import Kind
from llcg_dist.comm.session import Session
from llcg_dist.errors import PeerLostError, PeerTimeoutError, first_line


class Home(Protocol):
    """The rank that a machine group belongs to."""

    rank: int
    round: int
    received_bytes: int

    def wait(self, *works: tuple[int, Any]) -> None:
        """Until these are done: each with the rank whose link's thread waits for it."""


class MachineGroup:
    """Rows that all machines send each other at the same time; sealed, each pair's with the pair's own keys."""

    def __init__(self, home: Home, group: Any, sessions: Mapping[int, Session]) -> None:
        """`sessions`: by rank; empty where messages are not sealed, or where there is no other machine."""
        self._home, self._group, self._own = home, group, home.rank - 1
        self._sessions = {rank - 1: session for rank, session in sessions.items()}
        self._memory: dict[str, Tensor] = {}

    def all_to_all(self, sent: Tensor, sent_rows: list[int], received_rows: list[int]) -> Tensor:
        """The first sent_rows[0] rows go to the first machine, and so on; the rows received, machine by machine."""
        received = sent.new_empty(sum(received_rows), *sent.shape[1:])
        if self._sessions:
            self._exchange_sealed(_pieces(sent.contiguous(), sent_rows), _pieces(received, received_rows))
        else:
            self._wait(self._group.alltoall_base(received, sent, received_rows, sent_rows))
        seals = SEAL_BYTES * len(self._sessions)
        self._home.received_bytes += received[:1].nbytes * (len(received) - received_rows[self._own]) + seals
        return received

    def _wait(self, work: Any) -> None:
        """In the thread that waits for the server's link: there is one of its own for every rank with a link."""
        try:
            self._home.wait((0, work))
        except PeerTimeoutError:  # it names who is silent
            raise
        except PeerLostError as error:
            raise PeerLostError(
                f"lost the connection to another machine: {first_line(error.__cause__ or error)}"
            ) from error

    def _exchange_sealed(self, contents: list[Tensor], places: list[Tensor]) -> None:
        """A frame for each other machine; what stays here is copied."""
        label = Label(Kind.FEATURES, self._home.round)
        places[self._own].copy_(contents[self._own])
        outgoing, incoming = self._frames("outgoing", contents), self._frames("incoming", places)
        for machine, session in self._sessions.items():
            session.seal(label, contents[machine].numpy().data, outgoing[machine].numpy().data)
        sizes_in, sizes_out = ([len(frame) for frame in frames] for frames in (incoming, outgoing))
        whole_in, whole_out = self._memory["incoming"][: sum(sizes_in)], self._memory["outgoing"][: sum(sizes_out)]
        self._wait(self._group.alltoall_base(whole_in, whole_out, sizes_in, sizes_out))
        for machine, session in self._sessions.items():
            session.open(incoming[machine].numpy().data, places[machine].numpy().data)

    def _frames(self, which: str, contents: Sequence[Tensor]) -> list[Tensor]:
        """Memory for a frame around each content, one after the other; none for this machine's own."""
        sizes = [0 if m == self._own else len(content) + SEAL_BYTES for m, content in enumerate(contents)]
        if which not in self._memory or len(self._memory[which]) < sum(sizes):
            self._memory[which] = torch.empty(sum(sizes), dtype=torch.uint8)
        return list(self._memory[which][: sum(sizes)].split(sizes))


def _pieces(rows: Tensor, counts: Sequence[int]) -> list[Tensor]:
    """The bytes of the first counts[0] rows, and so on."""
    row_bytes = rows.element_size() * math.prod(rows.shape[1:])
    flat = rows.reshape(-1).view(torch.uint8)
    ends = accumulate(counts, initial=0)
    return [flat[row_bytes * start : row_bytes * end] for start, end in pairwise(ends)]
