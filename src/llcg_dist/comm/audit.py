"""Did more cross than was counted? The ledger against what the operating system counted on the job's own sockets.

Every rank reads the bytes of each of its TCP connections from the kernel (TCP_INFO, what `ss -tin` shows), the server
adds them up. Connections to the job's store (rendezvous, heartbeats) are bounded by what these need; all others,
whoever opened them, must have carried what the ledger says and Gloo's headers, not more. `cluster.audit=true` asks for
it. A connection that was opened and closed on the way is not seen: the network interfaces' counters tell of that.
"""

import contextlib
import json
import os
import socket
import stat
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import ceil, log2
from pathlib import Path
from typing import Any

from llcg_dist.comm.heartbeat import beat_interval
from llcg_dist.comm.rendezvous import POLL_INTERVAL
from llcg_dist.comm.torch_dist import Cluster
from llcg_dist.errors import TrainingError, UserError

HEADERS = 144
"""Bytes that Gloo adds to a message: three headers of 48 (ready to send, ready to receive, the message itself)."""
GREETING = 8
"""Bytes with which Gloo opens a connection."""
REQUEST = 128
"""Bytes that a question to the store and its answer may take; a heartbeat's took 59."""
MEETING = 2048
"""Store bytes that a rank may take to find the address of another, in all groups they share; it took some 1000."""
SETTLING = 32
"""Questions to the store, at short intervals, before the sockets are read."""

_LISTENING = 10  # TCP_LISTEN
_ACKED_RECEIVED, _SENT_RETRANSMITTED = 120, 200  # offsets in linux/tcp.h's struct tcp_info, each of two u64
_TWO = struct.Struct("=QQ")


@dataclass(frozen=True)
class Connection:
    """Payload of one TCP connection so far, as its own end counted it."""

    ports: tuple[int, ...]
    sent: int
    """Without what was sent again."""
    received: int
    sent_again: int = 0


def tcp_connections() -> dict[int, Connection]:
    """Of this process, by the socket's inode."""
    found: dict[int, Connection] = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # closed meanwhile
            status = os.stat(f"/proc/self/fd/{name}")
            if stat.S_ISSOCK(status.st_mode):
                with socket.socket(fileno=os.dup(int(name))) as handle:
                    found.update((status.st_ino, connection) for connection in _connection(handle))
    return found


def _connection(handle: socket.socket) -> Iterator[Connection]:
    if handle.family not in (socket.AF_INET, socket.AF_INET6) or handle.type != socket.SOCK_STREAM:
        return
    info = handle.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    if info[0] == _LISTENING:
        return
    if len(info) < _SENT_RETRANSMITTED + _TWO.size:
        raise UserError("cluster.audit=true: this kernel does not count a connection's bytes; it takes Linux 4.19")
    _, received = _TWO.unpack_from(info, _ACKED_RECEIVED)
    sent, again = _TWO.unpack_from(info, _SENT_RETRANSMITTED)
    ports = [handle.getsockname()[1]]
    with contextlib.suppress(OSError):  # not connected any more
        ports.append(handle.getpeername()[1])
    yield Connection(tuple(ports), sent - again, received, again)


@dataclass(frozen=True)
class Reading:
    """What one rank saw of its sockets since it started."""

    sent: int
    received: int
    counted_received: int
    """What its collectives brought it."""
    sent_again: int
    connections: int
    store_bytes: int
    """Sent and received."""
    store_allowance: int


class Audit:
    """One rank's part in it. To be made before the rank joins the others, so that nothing is missed."""

    def __init__(self, timeout: float) -> None:
        self._beat_interval = beat_interval(timeout)
        self._before = tcp_connections()
        self._started = self._joined = time.monotonic()
        self._verdict: dict[str, Any] | None = None
        self._finished_run: Path | None = None

    def joined(self) -> None:
        """The rank has found the others; from now on it talks to the store at a heartbeat's pace."""
        self._joined = time.monotonic()

    def take_part(self, cluster: Cluster) -> dict[str, Any] | None:
        """All ranks together, after their last exchange. The server gets the verdict, as wire.json will hold it."""
        own = cluster.in_silence(lambda: asdict(self._read(cluster)))
        messages, counted = cluster.ledger.since_start()
        readings = [Reading(**row) for row in cluster.gather_json(own)]
        if readings:
            barrier = cluster.size * ceil(log2(cluster.size))  # the messages of `in_silence`
            self._verdict = verdict(readings, counted, messages + barrier)
        return self._verdict

    def _read(self, cluster: Cluster) -> Reading:
        now, store_port = time.monotonic(), int(os.environ["MASTER_PORT"])
        of_store: list[Connection] = []
        others: list[Connection] = []
        for inode, connection in tcp_connections().items():
            (of_store if store_port in connection.ports else others).append(_since(self._before.get(inode), connection))
        peers = cluster.size - 1
        watched, polled = (peers, 5 * peers) if cluster.rank == 0 else (1, 1)
        polls = polled * (1 + (self._joined - self._started) / POLL_INTERVAL)
        beats = (2 + 2 * watched) * (2 + (now - self._joined) / self._beat_interval)
        return Reading(
            sent=sum(c.sent for c in others),
            received=sum(c.received for c in others),
            counted_received=cluster.received_bytes,
            sent_again=sum(c.sent_again for c in others),
            connections=len(others),
            store_bytes=sum(c.sent + c.received for c in of_store),
            store_allowance=int(REQUEST * (polls + beats + SETTLING) + MEETING * cluster.size),
        )

    @property
    def passed(self) -> bool:
        """Only the server knows better."""
        return self._verdict is None or self._verdict["passed"]

    def recall(self, run_dir: Path) -> None:
        """There is nothing to do, because the run is finished: what was found then still holds."""
        self._finished_run = run_dir

    def require_passed(self) -> None:
        """To be called when the ranks have left in order."""
        if self._finished_run:
            require_passed(recorded_verdict(self._finished_run))
        if self._verdict:
            require_passed(self._verdict)

    def __str__(self) -> str:
        return explain(self._verdict) if self._verdict else ""


def _since(before: Connection | None, now: Connection) -> Connection:
    """A connection that the process inherited has carried bytes that are not the job's."""
    if before is None:
        return now
    return Connection(
        now.ports, now.sent - before.sent, now.received - before.received, now.sent_again - before.sent_again
    )


def verdict(readings: Sequence[Reading], ledger_bytes: int, messages: int) -> dict[str, Any]:
    """The `audit` of wire.json. What is sent once is received once: two sums to compare with the ledger."""
    sent, received = sum(r.sent for r in readings), sum(r.received for r in readings)
    connections = sum(r.connections for r in readings)
    tolerance = HEADERS * messages + GREETING * connections
    store_bytes, store_allowance = sum(r.store_bytes for r in readings), sum(r.store_allowance for r in readings)
    explained = all(0 <= total - ledger_bytes <= tolerance for total in (sent, received))
    return {
        "passed": explained and store_bytes <= store_allowance,
        "ledger_bytes": ledger_bytes,
        "messages": messages,
        "socket_bytes_sent": sent,
        "socket_bytes_received": received,
        "socket_bytes_sent_again": sum(r.sent_again for r in readings),
        "difference": sent - ledger_bytes,
        "tolerance": tolerance,
        "store_bytes": store_bytes,
        "store_allowance": store_allowance,
        "connections": connections,
        "ranks": [asdict(r) for r in readings],
    }


def explain(found: dict[str, Any]) -> str:
    """One line: what the comparison says, and where the bytes are that nobody counted."""
    sockets = f"the sockets sent {found['socket_bytes_sent']:,} and received {found['socket_bytes_received']:,} bytes"
    line = f"{sockets}, the ledger has {found['ledger_bytes']:,} (headers may add {found['tolerance']:,})"
    if found["passed"]:
        return f"wire audit passed: {line}"
    excess = [rank["received"] - rank["counted_received"] for rank in found["ranks"]]
    place = max(range(len(excess)), key=lambda rank: abs(excess[rank]))
    line += f"; most of the difference is at rank {place}: it received {excess[place]:,} bytes that were not counted"
    if found["store_bytes"] > found["store_allowance"]:
        line += f"; the job's store moved {found['store_bytes']:,} bytes where {found['store_allowance']:,} explain it"
    return f"wire audit failed: {line}"


def require_passed(found: dict[str, Any]) -> None:
    if not found["passed"]:
        raise TrainingError(explain(found))


def recorded_verdict(run_dir: Path) -> dict[str, Any]:
    """On a run that is finished already."""
    try:
        found = json.loads((run_dir / "wire.json").read_text())["audit"]
        explain(found)
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        rule = "holds a finished run that was not audited; choose another folder, or leave cluster.audit off"
        raise UserError(f"cluster.audit=true: run_dir={run_dir} {rule}") from None
    return dict(found)
