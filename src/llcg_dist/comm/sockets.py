"""What the kernel counted on this process's own TCP connections: TCP_INFO, which `ss -tin` shows too."""

import contextlib
import os
import socket
import stat
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from llcg_dist.errors import UserError

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


def since(before: Mapping[int, Connection], now: Mapping[int, Connection]) -> Iterator[Connection]:
    """What connections have carried since; some may be the process's from before the job."""
    for inode, connection in now.items():
        old = before.get(inode, Connection((), 0, 0))
        sent, received = connection.sent - old.sent, connection.received - old.received
        yield Connection(connection.ports, sent, received, connection.sent_again - old.sent_again)
