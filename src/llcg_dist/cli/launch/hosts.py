"""Where the hosts of a job meet: a store kept by the head, on the head's address alone."""

import contextlib
import errno
import ipaddress
import socket
import threading
import time
from dataclasses import dataclass
from datetime import timedelta

from llcg_dist.comm.network import listen_on
from llcg_dist.comm.torch_dist import host_store, reach_store
from llcg_dist.errors import UserError

STORE_TIMEOUT = timedelta(seconds=60)
_LONGEST_WAIT_FOR_OTHERS_SECONDS = 25.0
"""Seconds that the head keeps the store for others to see how the job ended."""
_DEPARTURE_SECONDS = 2.0
_CAME, _LEFT = "llcg/came", "llcg/left"


@dataclass(frozen=True)
class Hosts:
    """A job on several hosts, as each of them is told."""

    count: int
    head: str
    """Address (or name) of the host that keeps the store."""
    port: int
    job: str
    join_timeout: float
    """Seconds to wait for the head."""
    attempts: int
    """How often this host joins, should it lose the head for so long that torchrun's agent gives up."""
    is_head: bool | None = None
    """Whether this host is that one; None: it is if the address is its own."""
    name: str = ""
    """Of this host's folder among the logs, where hosts share a run_dir."""


class Meeting:
    """This host's end of the store that all hosts of the job share."""

    def __init__(self, hosts: Hosts) -> None:
        listener = _listener(hosts)
        self._is_head = listener is not None
        if listener is None:
            _wait_for_head(hosts)
            self.store = reach_store(hosts.head, hosts.port, STORE_TIMEOUT)
            self.store.add(_CAME, 1)
        else:
            self.store = host_store(listener, STORE_TIMEOUT)

    def leave(self, in_haste: bool) -> None:
        """The head goes last, unless it is in haste: without its store the others could not tell how the job ended."""
        if not self._is_head:
            # In a thread: across a cut link this would wait for minutes.
            farewell = threading.Thread(target=self._announce_departure, daemon=True)
            farewell.start()
            farewell.join(_DEPARTURE_SECONDS)
        elif not in_haste:
            end = time.monotonic() + _LONGEST_WAIT_FOR_OTHERS_SECONDS
            while self.store.add(_LEFT, 0) < self.store.add(_CAME, 0) and time.monotonic() < end:
                time.sleep(0.1)

    def _announce_departure(self) -> None:
        with contextlib.suppress(RuntimeError):  # torch's DistNetworkError: the head is out of reach
            self.store.add(_LEFT, 1)


def _listener(hosts: Hosts) -> socket.socket | None:
    """At the head; None on all other hosts."""
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
    """Hosts are started in any order."""
    end = time.monotonic() + hosts.join_timeout
    while True:
        try:
            socket.create_connection((hosts.head, hosts.port), timeout=5).close()
            return
        except OSError as error:
            if time.monotonic() > end:
                reason = f"({error.strerror or error}); is it started, and its port open to this host?"
                limit = f"within cluster.join_timeout={hosts.join_timeout:g} s"
                raise UserError(f"no answer from the head at {hosts.head}:{hosts.port} {limit} {reason}") from None
            time.sleep(0.5)
