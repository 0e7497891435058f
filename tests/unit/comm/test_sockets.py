"""The kernel's counts of a connection's bytes, as `ss` reads them."""

import os
import re
import shutil
import socket
import subprocess
from typing import Any

import pytest

from llcg_dist.comm.sockets import Connection, tcp_connections


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
