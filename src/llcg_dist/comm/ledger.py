"""Counts every message by kind, direction and shape, and refuses those the algorithm does not allow."""

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from torch import Tensor

from llcg_dist.errors import ProtocolError

CONTROL_LIMIT = 4096
"""Control bytes that may cross per machine and round."""


class Kind(StrEnum):
    PARAMETERS = "parameters"
    GRADIENTS = "gradients"
    FEATURES = "features"
    CONTROL = "control"


class Direction(StrEnum):
    UP = "up"
    """Machine to server."""
    DOWN = "down"
    """Server to machine."""


class Phase(StrEnum):
    HANDSHAKE = "handshake"
    """Once, at the start; its control bytes are counted apart from the rounds'."""
    ROUND = "round"


@dataclass(frozen=True)
class Message:
    kind: Kind
    direction: Direction
    dtype: str
    elements: int
    bytes: int
    phase: Phase = Phase.ROUND

    @staticmethod
    def of(tensor: Tensor, kind: Kind, direction: Direction, phase: Phase = Phase.ROUND) -> "Message":
        dtype = str(tensor.dtype).removeprefix("torch.")
        return Message(kind, direction, dtype, tensor.numel(), tensor.numel() * tensor.element_size(), phase)


@dataclass(frozen=True)
class Traffic:
    """Bytes of one round over all machines, by kind; `exchanges` counts the times the server answered them."""

    bytes_up: int
    bytes_down: int
    feature_bytes: int
    gradient_bytes: int
    control_bytes: int
    exchanges: int


class Ledger:
    """Python integers: no count overflows."""

    def __init__(self, allowed: frozenset[Kind]) -> None:
        self._allowed = allowed | {Kind.CONTROL}
        self._counts: defaultdict[Message, int] = defaultdict(int)
        self._round: defaultdict[tuple[Kind, Direction], int] = defaultdict(int)
        self._control_per_machine = 0
        self._exchanges = 0

    def count(self, message: Message, machines: int) -> None:
        """`machines` messages of this shape are about to cross, one per machine. Called before sending."""
        if message.kind not in self._allowed:
            allowed = ", ".join(sorted(self._allowed))
            raise ProtocolError(f"a message of {message.kind} must not cross here (allowed: {allowed})")
        self._counts[message] += machines
        if message.phase is Phase.HANDSHAKE:
            return
        if message.kind is Kind.CONTROL:
            self._control_per_machine += message.bytes
            if self._control_per_machine > CONTROL_LIMIT:
                raise ProtocolError(f"more than {CONTROL_LIMIT} control bytes per machine and round")
        if message.kind in (Kind.PARAMETERS, Kind.GRADIENTS) and message.direction is Direction.DOWN:
            self._exchanges += 1
        self._round[message.kind, message.direction] += machines * message.bytes

    def end_round(self) -> Traffic:
        """What crossed since the last call."""

        def moved(kind: Kind, *directions: Direction) -> int:
            return sum(self._round[kind, direction] for direction in directions or Direction)

        traffic = Traffic(
            bytes_up=moved(Kind.PARAMETERS, Direction.UP),
            bytes_down=moved(Kind.PARAMETERS, Direction.DOWN),
            feature_bytes=moved(Kind.FEATURES),
            gradient_bytes=moved(Kind.GRADIENTS),
            control_bytes=moved(Kind.CONTROL),
            exchanges=self._exchanges,
        )
        self._round.clear()
        self._control_per_machine = 0
        self._exchanges = 0
        return traffic

    def total_bytes(self) -> int:
        return sum(message.bytes * count for message, count in self._counts.items())

    def restore(self, rows: list[dict[str, Any]]) -> None:
        """Goes on from the counts that `as_json` gave to an earlier start of the same run."""
        for row in rows:
            size = row["bytes"] // row["count"]
            kind, direction, phase = Kind(row["kind"]), Direction(row["direction"]), Phase(row["phase"])
            self._counts[Message(kind, direction, row["dtype"], row["elements"], size, phase)] += row["count"]

    def as_json(self) -> dict[str, Any]:
        """The content of wire.json: a row per kind, direction and shape; `elements` of one message, `bytes` of all."""
        rows: list[dict[str, Any]] = [
            {
                "kind": message.kind.value,
                "direction": message.direction.value,
                "phase": message.phase.value,
                "dtype": message.dtype,
                "elements": message.elements,
                "count": count,
                "bytes": message.bytes * count,
            }
            for message, count in self._counts.items()
        ]
        totals = {kind.value: sum(row["bytes"] for row in rows if row["kind"] == kind) for kind in Kind}
        return {"messages": rows, "bytes_by_kind": totals, "total_bytes": self.total_bytes()}
