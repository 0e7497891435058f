"""The kernel's counts, read as `ss` reads them, and the verdict on them by hand."""

import json
import os
import re
import shutil
import socket
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llcg_dist.comm.audit import (
    CONNECT_BYTES,
    HEADER_BYTES,
    Reading,
    explain,
    recorded_verdict,
    verdict,
)
from llcg_dist.comm.sockets import Connection, tcp_connections
from llcg_dist.config.compose import load_config
from llcg_dist.errors import UserError


@pytest.fixture
def pair() -> Any:
    """Two ends of a TCP connection over which 100,000 bytes went one way and 7 the other."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname(), timeout=10)
        far = listener.accept()[0]
        with near, far:
            near.sendall(bytes(100_000))
            assert len(far.recv(100_000, socket.MSG_WAITALL)) == 100_000
            far.sendall(b"answer!")
            assert near.recv(7, socket.MSG_WAITALL) == b"answer!"
            yield near, far


def counted(end: socket.socket) -> Connection:
    return tcp_connections()[os.fstat(end.fileno()).st_ino]


def test_both_ends_of_a_connection_are_counted(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    ports = near.getsockname()[1], far.getsockname()[1]
    assert (counted(near).sent, counted(near).received) == (100_000, 7)
    assert (counted(far).sent, counted(far).received) == (7, 100_000)
    assert counted(near).ports == ports
    assert counted(far).ports == ports[::-1]


@pytest.mark.skipif(not shutil.which("ss"), reason="needs iproute2")
def test_counts_are_those_of_ss(pair: tuple[socket.socket, socket.socket]) -> None:
    for end in pair:
        own, other = end.getsockname()[1], end.getpeername()[1]
        command = ["ss", "-tinH", f"( sport = :{own} and dport = :{other} )"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
        fields = dict(re.findall(r"(bytes_\w+):(\d+)", shown))
        found = counted(end)
        assert int(fields["bytes_sent"]) - int(fields.get("bytes_retrans", 0)) == found.sent
        assert int(fields["bytes_received"]) == found.received


def test_what_carries_no_bytes_is_left_out(pair: tuple[socket.socket, socket.socket]) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        left, right = socket.socketpair()
        with left, right:
            inodes = {os.fstat(end.fileno()).st_ino for end in (listener, datagrams, left, right)}
            assert not inodes & set(tcp_connections())
    assert len(os.listdir("/proc/self/fd")) == before


# A server and two machines, each with two connections; twenty messages with 10,000 bytes in all.
COUNTED, MESSAGES = 10_000, 20
SERVER = Reading(
    sent=5000,
    received=5000,
    counted_received=5000,
    sent_again=0,
    connections=2,
    joining_bytes=10,
    joining_allowance=20,
    store_bytes=900,
    store_allowance=1000,
)
MACHINE = replace(SERVER, sent=2500, received=2500, counted_received=2500, store_bytes=400, store_allowance=500)


def judged(**changes: int) -> dict[str, Any]:
    """Changes are to the second machine's reading."""
    changed = {name: getattr(MACHINE, name) + more for name, more in changes.items()}
    return verdict([SERVER, MACHINE, replace(MACHINE, **changed)], COUNTED, MESSAGES)


def test_a_verdict_by_hand() -> None:
    found = judged(sent=100, received=100, sent_again=9)
    assert {key: value for key, value in found.items() if key != "ranks"} == {
        "passed": True,
        "ledger_bytes": 10_000,
        "messages": 20,
        "socket_bytes_sent": 10_100,
        "socket_bytes_received": 10_100,
        "socket_bytes_sent_again": 9,
        "difference": 100,
        "tolerance": 20 * 144 + 6 * 8,
        "joining_bytes": 30,
        "joining_allowance": 60,
        "store_bytes": 1700,
        "store_allowance": 2000,
        "connections": 6,
    }
    assert len(found["ranks"]) == 3
    assert explain(found).startswith("wire audit passed: the sockets sent 10,100 and received 10,100 bytes")


def test_headers_are_all_that_may_be_added() -> None:
    most = HEADER_BYTES * MESSAGES + CONNECT_BYTES * 6
    assert judged(sent=most, received=most)["passed"]
    assert judged()["passed"]
    for changes in (
        {"sent": most + 1, "received": most},
        {"sent": most, "received": most + 1},
        {"sent": -1},  # the ledger has what no socket carried
        {"received": -1},
        {"store_bytes": 301},
        {"joining_bytes": 31},
    ):
        assert not judged(**changes)["passed"], changes


def test_a_failure_says_how_much_and_where() -> None:
    line = explain(judged(sent=4000, received=4000))
    assert "failed: the sockets sent 14,000 and received 14,000 bytes, the ledger has 10,000" in line
    assert "rank 2, which received 4,000 bytes that were not counted" in line
    assert "store" not in line
    assert "at rank" not in explain(judged(store_bytes=1000))
    assert "the job's store moved 2,700 bytes afterwards, where" in explain(judged(store_bytes=1000))
    assert "the job's store moved 130 bytes while ranks joined, where" in explain(judged(joining_bytes=100))


def test_a_finished_run_keeps_its_verdict(tmp_path: Path) -> None:
    for content in ("", "[]", "{}", '{"audit": null}', '{"audit": {"passed": true}}'):
        (tmp_path / "wire.json").write_text(content)
        with pytest.raises(UserError, match="a finished run that was not audited"):
            recorded_verdict(tmp_path)
    (tmp_path / "wire.json").write_text(json.dumps({"audit": judged(sent=4000)}))
    assert recorded_verdict(tmp_path) == judged(sent=4000)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("cluster.backend=loopback", "opens no sockets"),
        ("cluster.backend=nccl", "NCCL"),
        ("algorithm=single", "nothing crosses"),
        ("algorithm=server_only", "nothing crosses"),
    ],
)
def test_an_audit_that_cannot_be_is_refused(setting: str, reason: str) -> None:
    load_config([setting])
    with pytest.raises(UserError, match=f"cluster.audit=True: .*{reason}"):
        load_config([setting, "cluster.audit=true"])
