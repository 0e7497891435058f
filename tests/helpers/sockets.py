"""On which addresses do these processes listen?"""

import contextlib
import ipaddress
import re
from collections.abc import Iterable
from pathlib import Path

_LISTEN = "0A"


def listening(pids: Iterable[int]) -> dict[int, set[str]]:
    """The addresses that each process listens on for TCP, read from the kernel."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # it may end meanwhile
            own, addresses = _sockets(pid), _addresses(pid)
            found[pid] = {addresses[inode] for inode in own & addresses.keys()}
    return found


def _sockets(pid: int) -> set[str]:
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            match = re.fullmatch(r"socket:\[(\d+)\]", str(entry.readlink()))
            if match:
                inodes.add(match[1])
    return inodes


def _addresses(pid: int) -> dict[str, str]:
    """{inode: address} of the listening sockets in the process's network namespace."""
    found = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTEN:
                found[fields[9]] = _readable(fields[1].split(":")[0])
    return found


def _readable(hexadecimal: str) -> str:
    """The kernel prints each 32-bit word in the host's byte order."""
    words = [hexadecimal[start : start + 8] for start in range(0, len(hexadecimal), 8)]
    return str(ipaddress.ip_address(b"".join(bytes.fromhex(word)[::-1] for word in words)))
