"""The store that all hosts of a job share, for their rendezvous: the head hosts it, on one address of its own."""

import contextlib
import errno
import ipaddress
import socket
import time
from dataclasses import dataclass
from datetime import timedelta

from llcg_dist.cli.launch.attendance import Attendance
from llcg_dist.comm.job_store import host_store, reach_store, sealed
from llcg_dist.comm.network import listen_on
from llcg_dist.errors import UserError

_STORE_TIMEOUT = timedelta(seconds=60)
"""How long an operation on the store may take."""
_WAIT_FOR_OTHERS_SECONDS = 25.0
"""How long the head keeps the store at the end of a job, so that the other hosts can read how it ended."""
_CONNECT_SECONDS = 5.0
_RETRY_SECONDS = 0.5
_GREETING, _GREETING_SECONDS = ("llcg/head", "welcome"), timedelta(seconds=5)
"""Key and value that the head sets first, and how long others wait for it: a host with another key cannot read it."""


@dataclass(frozen=True)
class Hosts:
    """The hosts of a job, as the launcher on one of them sees them."""

    count: int
    head: str
    """Address or name of the head: the host that hosts the store."""
    port: int
    job: str
    """A name that only the hosts of the same job share."""
    join_timeout: float
    """Seconds to wait for the head."""
    attempts: int
    """How often this host joins in all, should it lose the head for so long that torchrun's agent gives up."""
    is_head: bool | None = None
    """Whether this host is the head; None: it is if the head's address is one of its own."""
    name: str = ""
    """Name of this host's folder in the logs, where hosts share a run_dir."""
    parts: frozenset[int] | None = None
    """On this host's disk: it may take the places of their machines in a job that runs; None: it never does."""


class JobStore:
    """This host's end of the job's store. Of several hosts the head hosts it, and the others connect to it."""

    def __init__(self, hosts: Hosts | None, key: bytes | None) -> None:
        """Opens the store, sealed with the job's key; hosts may be started in any order, so the others wait for the
        head. `hosts`: None where the job has this host alone."""
        listener = _listener(hosts) if hosts else listen_on("127.0.0.1", 0)
        self.is_head = listener is not None
        if listener:
            beneath = host_store(listener, _STORE_TIMEOUT)
        elif hosts:
            _wait_for_head(hosts)
            beneath = reach_store(hosts.head, hosts.port, _STORE_TIMEOUT)
        self.address = beneath.host, beneath.port
        self.store = sealed(beneath, key)
        self.attendance = Attendance(self.store)
        if self.is_head:
            self.store.set(*_GREETING)
        else:
            self._require_greeting()
            self.attendance.come()

    def _require_greeting(self) -> None:
        """Raises a UserError where the head's values do not open with this host's key."""
        key, value = _GREETING
        with contextlib.suppress(RuntimeError):  # torch's, where there is no authentic value for so long
            self.store.wait([key], _GREETING_SECONDS)
            if self.store.get(key) == value.encode():
                return
        rule = "give every host the same cluster.sealed, and a copy of the same file as cluster.key_file"
        raise UserError(
            "the head at {}:{}: its store is not sealed with this host's key; {}".format(*self.address, rule)
        )

    def leave(self, wait_for_others: bool) -> None:
        """Leaves the job. With `wait_for_others` the head leaves last: its store tells the others how the job ended."""
        if not self.is_head:
            self.attendance.leave()
        elif wait_for_others:
            self.attendance.wait_for_others(_WAIT_FOR_OTHERS_SECONDS)


def _listener(hosts: Hosts) -> socket.socket | None:
    """The listening socket of the store at the head; None on all other hosts."""
    if hosts.is_head is False:
        return None
    try:
        address = socket.getaddrinfo(hosts.head, hosts.port, type=socket.SOCK_STREAM)[0][4][0]
    except OSError as error:
        raise UserError(f"the head {hosts.head}: this host finds no such name ({error.strerror})") from None
    if ipaddress.ip_address(address).is_loopback and hosts.is_head is None:
        raise UserError(f"the head {hosts.head}: is {address} on this host, where no other reaches it; give an address")
    try:
        return listen_on(hosts.head, hosts.port)
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL and hosts.is_head is None:
            return None
        reason = f"port {hosts.port} cannot be used ({error.strerror}); choose another, the same on all hosts"
        raise UserError(f"the head {hosts.head}: {reason}") from None


def _wait_for_head(hosts: Hosts) -> None:
    """Waits until the head accepts connections; a UserError after hosts.join_timeout."""
    end = time.monotonic() + hosts.join_timeout
    while True:
        try:
            socket.create_connection((hosts.head, hosts.port), timeout=_CONNECT_SECONDS).close()
            return
        except OSError as error:
            if time.monotonic() > end:
                reason = f"({error.strerror or error}); is it started, and its port open to this host?"
                limit = f"within cluster.join_timeout={hosts.join_timeout:g} s"
                raise UserError(f"no answer from the head at {hosts.head}:{hosts.port} {limit} {reason}") from None
            time.sleep(_RETRY_SECONDS)
