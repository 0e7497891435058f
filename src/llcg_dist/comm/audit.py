"""Did more cross than was counted? The ledger against what the operating system counted on the job's own sockets.

Every rank reads the bytes of each of its TCP connections from the kernel (TCP_INFO, what `ss -tin` shows), the server
adds them up. Connections to the job's store (rendezvous, heartbeats) are bounded by what these need; all others,
whoever opened them, must have carried what the ledger says and Gloo's headers, not more. `cluster.audit=true` asks for
it. A connection that was opened and closed on the way is not seen: the network interfaces' counters tell of that.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from llcg_dist.comm.control import barrier, gather_json
from llcg_dist.comm.liveness import Limits
from llcg_dist.comm.rendezvous import POLL_SECONDS
from llcg_dist.comm.sockets import Connection, since, tcp_connections
from llcg_dist.comm.torch_dist import Cluster
from llcg_dist.data import progress
from llcg_dist.errors import TrainingError, UserError

HEADER_BYTES = 144
"""Bytes that Gloo adds to a message: three headers of 48 (ready to send, ready to receive, the message itself)."""
CONNECT_BYTES = 8
"""Bytes with which Gloo opens a connection."""
STORE_REQUEST_BYTES = 128
"""Bytes that a question to the store and its answer may take; a heartbeat's took 59."""
RENDEZVOUS_BYTES = 1024
"""Store bytes that a rank may take to find the address of another, in one group; it took 400 to 600."""
OTHER_REQUESTS = 32
"""Questions to the store that a rank may ask besides: to enter it, and before the sockets are read."""


@dataclass(frozen=True)
class Reading:
    """What one rank saw of its sockets since it started."""

    sent: int
    received: int
    counted_received: int
    """What its collectives brought it."""
    sent_again: int
    connections: int
    joining_bytes: int
    """To and from the store, until the ranks had found each other: before any of them opens a graph."""
    joining_allowance: int
    store_bytes: int
    """To and from the store, after the ranks had found each other."""
    store_allowance: int


class Audit:
    """One rank's part in it. To be made before the rank joins the others, so that nothing is missed."""

    def __init__(self, limits: Limits) -> None:
        self._beat_interval = limits.beat_interval
        self._before, self._started = tcp_connections(), time.monotonic()
        self.joined()
        self._verdict: dict[str, Any] | None = None
        self._finished_run: Path | None = None

    def joined(self) -> None:
        """The rank has found the others; from now on it talks to the store at a heartbeat's pace."""
        self._at_join, self._joined = tcp_connections(), time.monotonic()

    def take_part(self, cluster: Cluster) -> dict[str, Any] | None:
        """All ranks together, after their last exchange. The server gets the verdict, as wire.json will hold it."""
        barrier(cluster)  # all that ranks sent each other has arrived
        with progress.waiting():
            cluster.board.meet()
            own = asdict(self._read(cluster))
            cluster.board.meet()  # no rank sends more before all have read their sockets
        messages, counted = cluster.ledger.since_start()
        readings = [Reading(**row) for row in gather_json(cluster, own)]
        if readings:
            self._verdict = verdict(readings, counted, messages)
        return self._verdict

    def _read(self, cluster: Cluster) -> Reading:
        now, connections = time.monotonic(), tcp_connections()
        carried = [c for c in since(self._before, connections) if not _is_stores(c)]
        peers = cluster.size - 1
        watched, polled = (peers, 5 * peers) if cluster.rank == 0 else (1, 1)
        polls = polled * (1 + (self._joined - self._started) / POLL_SECONDS)
        beats = (2 + 2 * watched) * (2 + (now - self._joined) / self._beat_interval)
        return Reading(
            sent=sum(c.sent for c in carried),
            received=sum(c.received for c in carried),
            counted_received=cluster.received_bytes,
            sent_again=sum(c.sent_again for c in carried),
            connections=len(carried),
            joining_bytes=_store_bytes(self._before, self._at_join),
            joining_allowance=int(STORE_REQUEST_BYTES * (polls + OTHER_REQUESTS) + RENDEZVOUS_BYTES * cluster.size),
            store_bytes=_store_bytes(self._at_join, connections),
            store_allowance=int(STORE_REQUEST_BYTES * (beats + OTHER_REQUESTS) + RENDEZVOUS_BYTES * cluster.size),
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


def _store_bytes(before: Mapping[int, Connection], now: Mapping[int, Connection]) -> int:
    """As those who ask count them: where this process hosts the store, its ends would count them again."""
    return sum(c.sent + c.received for c in since(before, now) if _store_port() in c.ports[1:])


def _is_stores(connection: Connection) -> bool:
    """To the job's store, or from it."""
    return _store_port() in connection.ports


def _store_port() -> int:
    return int(os.environ["MASTER_PORT"])


def verdict(readings: Sequence[Reading], ledger_bytes: int, messages: int) -> dict[str, Any]:
    """The `audit` of wire.json. What is sent once is received once: two sums to compare with the ledger."""
    total = {f.name: sum(getattr(reading, f.name) for reading in readings) for f in fields(Reading)}
    tolerance = HEADER_BYTES * messages + CONNECT_BYTES * total["connections"]
    found = {
        "ledger_bytes": ledger_bytes,
        "messages": messages,
        "socket_bytes_sent": total["sent"],
        "socket_bytes_received": total["received"],
        "socket_bytes_sent_again": total["sent_again"],
        "difference": total["sent"] - ledger_bytes,
        "tolerance": tolerance,
        "joining_bytes": total["joining_bytes"],
        "joining_allowance": total["joining_allowance"],
        "store_bytes": total["store_bytes"],
        "store_allowance": total["store_allowance"],
        "connections": total["connections"],
        "ranks": [asdict(reading) for reading in readings],
    }
    quiet = all(total[f"{phase}_bytes"] <= total[f"{phase}_allowance"] for phase in ("joining", "store"))
    return {"passed": _explained(found) and quiet} | found


def _explained(found: Mapping[str, Any]) -> bool:
    """The ledger and Gloo's headers are all that the sockets carried."""
    ways = (found["socket_bytes_sent"], found["socket_bytes_received"])
    return all(0 <= total - found["ledger_bytes"] <= found["tolerance"] for total in ways)


def explain(found: dict[str, Any]) -> str:
    """One line: what the comparison says, and where the bytes are that nobody counted."""
    sockets = f"the sockets sent {found['socket_bytes_sent']:,} and received {found['socket_bytes_received']:,} bytes"
    line = f"{sockets}, the ledger has {found['ledger_bytes']:,} (headers may add {found['tolerance']:,})"
    if found["passed"]:
        return f"wire audit passed: {line}"
    if not _explained(found):
        excess = [rank["received"] - rank["counted_received"] for rank in found["ranks"]]
        place = max(range(len(excess)), key=lambda rank: abs(excess[rank]))
        line += f"; most of it is at rank {place}, which received {excess[place]:,} bytes that were not counted"
    for when, name in (("while ranks joined", "joining"), ("afterwards", "store")):
        moved, allowed = found[f"{name}_bytes"], found[f"{name}_allowance"]
        if moved > allowed:
            line += f"; the job's store moved {moved:,} bytes {when}, where heartbeats and addresses take {allowed:,}"
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
