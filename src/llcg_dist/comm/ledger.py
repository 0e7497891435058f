"""Counts every message by kind, direction and shape, and refuses those the algorithm does not allow."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from torch import Tensor

from llcg_dist.errors import ProtocolError

CONTROL_BYTES_LIMIT = 4096
"""Control bytes, and those of frames and seals, that may cross per machine and round."""
ROW_NUMBERS, ROWS = "row numbers", "rows"
"""What a message of features holds: which rows are wanted (and how many), or the rows."""


class Kind(StrEnum):
    PARAMETERS = "parameters"
    GRADIENTS = "gradients"
    FEATURES = "features"
    CONTROL = "control"
    SEALING = "sealing"
    """Frames and seals of the messages that are counted by what is in them (comm/frame.py)."""


class Direction(StrEnum):
    UP = "up"
    """Machine to server."""
    DOWN = "down"
    """Server to machine."""
    BETWEEN = "between"
    """Machine to machine."""


class Phase(StrEnum):
    HANDSHAKE = "handshake"
    """Once, at the start; its control bytes are counted apart from the rounds'."""
    ROUND = "round"


@dataclass(frozen=True)
class CountedMessage:
    kind: Kind
    direction: Direction
    dtype: str
    elements: int
    bytes: int
    phase: Phase = Phase.ROUND

    @staticmethod
    def of(tensor: Tensor, kind: Kind, direction: Direction, phase: Phase = Phase.ROUND) -> "CountedMessage":
        dtype = str(tensor.dtype).removeprefix("torch.")
        return CountedMessage(kind, direction, dtype, tensor.numel(), tensor.numel() * tensor.element_size(), phase)


@dataclass(frozen=True)
class Traffic:
    """Bytes of one round over all machines, by kind; `exchanges` counts the times the server answered them: with the
    model, or, where every step is shared, with a gradient."""

    bytes_up: int
    bytes_down: int
    feature_bytes: int
    gradient_bytes: int
    control_bytes: int
    exchanges: int
    feature_id_bytes: int = 0
    """Of `feature_bytes`, those that say which rows are wanted."""
    feature_row_bytes: int = 0
    sealing_bytes: int = 0
    """What sealing added to all of them."""


@dataclass
class _Line:
    """Messages of one kind, direction, phase, type and size, all counted together."""

    count: int = 0
    bytes: int = 0


_Key = tuple[Kind, Direction, Phase, str, int | None]
"""(kind, direction, phase, dtype, elements of one message); None elements where they differ."""


class Ledger:
    """Python integers: no count overflows."""

    def __init__(self, allowed: frozenset[Kind]) -> None:
        self._allowed = allowed | {Kind.CONTROL, Kind.SEALING}
        self._lines: defaultdict[_Key, _Line] = defaultdict(_Line)
        self._round: defaultdict[tuple[Kind, Direction], int] = defaultdict(int)
        self._control_per_machine = 0
        self._answers: Counter[Kind] = Counter()
        self._fetched: Counter[str] = Counter()
        self._earlier = _Line()
        self._enclosed = 0

    def count(self, message: CountedMessage, machines: int, enclosed: int = 0) -> None:
        """`machines` messages of this shape are about to cross, one per machine. Called before sending.

        `enclosed`: so many of them inside another one, which was counted already."""
        self.count_each({message: machines}, enclosed)

    def count_each(self, messages: Mapping[CountedMessage, int], enclosed: int = 0) -> None:
        """Messages that differ in their size alone, one per machine; how many there are of each."""
        self._enclosed += enclosed
        for message, machines in messages.items():
            self._require_allowed(message.kind)
            key = message.kind, message.direction, message.phase, message.dtype, message.elements
            self._add(*key, machines, machines * message.bytes)
        longest = max(messages, key=lambda message: message.bytes)
        if longest.phase is Phase.HANDSHAKE:
            return
        if longest.kind in (Kind.CONTROL, Kind.SEALING):
            self._control_per_machine += longest.bytes
            if self._control_per_machine > CONTROL_BYTES_LIMIT:
                raise ProtocolError(f"more than {CONTROL_BYTES_LIMIT} control bytes per machine and round")
        if longest.direction is Direction.DOWN:
            self._answers[longest.kind] += 1
            if longest.kind is Kind.GRADIENTS:  # a method that shares every step has a round's budget for each of them
                self._control_per_machine = 0
        total = sum(machines * message.bytes for message, machines in messages.items())
        self._round[longest.kind, longest.direction] += total

    @contextmanager
    def also_allowing(self, kinds: frozenset[Kind]) -> Iterator[None]:
        """Lets these kinds cross inside the block, and not after it."""
        before = self._allowed
        self._allowed = before | kinds
        try:
            yield
        finally:
            self._allowed = before

    def count_features(self, content: str, messages: int, total: int) -> None:
        """`messages` with ROWS of features, or with ROW_NUMBERS, go from machine to machine."""
        self._require_allowed(Kind.FEATURES)
        if messages:
            self._add(Kind.FEATURES, Direction.BETWEEN, Phase.ROUND, content, None, messages, total)
            self._round[Kind.FEATURES, Direction.BETWEEN] += total
            self._fetched[content] += total

    def count_seals(self, each: int, messages: int, direction: Direction, phase: Phase = Phase.ROUND) -> None:
        """Frames and seals, of so many bytes each, around messages that are counted by themselves: one per machine, or
        between machines any number."""
        if each and direction is not Direction.BETWEEN:
            counted = CountedMessage(Kind.SEALING, direction, "uint8", each, each, phase)
            self.count(counted, messages, enclosed=messages)
        elif each and messages:
            self._enclosed += messages
            self._add(Kind.SEALING, direction, phase, "uint8", each, messages, each * messages)
            self._round[Kind.SEALING, direction] += each * messages

    def _require_allowed(self, kind: Kind) -> None:
        if kind not in self._allowed:
            allowed = ", ".join(sorted(self._allowed))
            raise ProtocolError(f"a message of {kind} must not cross here (allowed: {allowed})")

    def _add(
        self, kind: Kind, direction: Direction, phase: Phase, dtype: str, elements: int | None, count: int, total: int
    ) -> None:
        line = self._lines[kind, direction, phase, dtype, elements]
        line.count += count
        line.bytes += total

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
            exchanges=self._answers[Kind.GRADIENTS] or self._answers[Kind.PARAMETERS],
            feature_id_bytes=self._fetched[ROW_NUMBERS],
            feature_row_bytes=self._fetched[ROWS],
            sealing_bytes=moved(Kind.SEALING),
        )
        self._round.clear()
        self._control_per_machine = 0
        self._answers.clear()
        self._fetched.clear()
        return traffic

    def total_bytes(self) -> int:
        return sum(line.bytes for line in self._lines.values())

    def since_start(self) -> tuple[int, int]:
        """Messages (as they went over the wire) and bytes, without those of earlier starts of the run."""
        messages = sum(line.count for line in self._lines.values())
        return messages - self._earlier.count - self._enclosed, self.total_bytes() - self._earlier.bytes

    def restore(self, rows: list[dict[str, Any]]) -> None:
        """Goes on from the counts that `as_json` gave to an earlier start of the same run."""
        for row in rows:
            kind, direction, phase = Kind(row["kind"]), Direction(row["direction"]), Phase(row["phase"])
            self._add(kind, direction, phase, row["dtype"], row["elements"], row["count"], row["bytes"])
            self._earlier.count += row["count"]
            self._earlier.bytes += row["bytes"]

    def as_json(self) -> dict[str, Any]:
        """The content of wire.json: a row per kind, direction and shape; `elements` of one message (null where they
        differ), `bytes` of all. In detail, a kind's bytes are up, down and between machines, those of features row
        numbers and rows.
        """
        rows: list[dict[str, Any]] = [
            {
                "kind": kind.value,
                "direction": direction.value,
                "phase": phase.value,
                "dtype": dtype,
                "elements": elements,
                "count": line.count,
                "bytes": line.bytes,
            }
            for (kind, direction, phase, dtype, elements), line in self._lines.items()
        ]
        by_kind = {kind.value: 0 for kind in Kind}
        in_detail: dict[str, dict[str, int]] = {kind.value: {} for kind in Kind}
        for row in rows:
            by_kind[row["kind"]] += row["bytes"]
            way = row["dtype"] if row["kind"] == Kind.FEATURES else row["direction"]
            in_detail[row["kind"]][way] = in_detail[row["kind"]].get(way, 0) + row["bytes"]
        return {
            "messages": rows,
            "bytes_by_kind": by_kind,
            "bytes_in_detail": in_detail,
            "total_bytes": self.total_bytes(),
        }
