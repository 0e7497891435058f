"""Addresses and interfaces: where a job listens, and through which interface its ranks talk."""

import os
import socket
from collections.abc import Mapping, Sequence

import psutil

from llcg_dist.errors import UserError

_VARIABLES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")


def listen_on(host: str, port: int) -> socket.socket:
    """A listening socket on this one address (port 0: any free one). OSError where it is not ours, or taken."""
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of an earlier job may linger
        listener.bind(address)
        listener.listen(socket.SOMAXCONN)
    except OSError:
        listener.close()
        raise
    return listener


def use_interface(requested: str | None, master: str) -> None:
    """Makes Gloo and NCCL talk through cluster.interface, or through the one that leads to `master` (MASTER_ADDR)."""
    here = interfaces()
    for variable in _VARIABLES:
        preset = os.environ.get(variable)
        if requested or not preset:
            os.environ[variable] = choose_interface(requested, route_to(master), here)


def choose_interface(requested: str | None, own_address: str | None, here: Mapping[str, Sequence[str]]) -> str:
    """`requested` where it can work, else the one with `own_address`. `here` has the addresses of each interface."""
    usable = ", ".join(f"{name} ({addresses[0]})" for name, addresses in sorted(here.items()) if addresses)
    if requested:
        if here.get(requested):
            return requested
        lacks = "has no address" if requested in here else "is no interface of this host"
        raise UserError(f"cluster.interface={requested}: {lacks} ({socket.gethostname()}); there are {usable}")
    for name, addresses in here.items():
        if own_address in addresses:
            return name
    raise UserError(
        f"cluster.interface: none leads to the job's head from {socket.gethostname()}; name one of {usable}"
    )


def route_to(host: str) -> str | None:
    """The address of this host that packets to `host` would leave from; nothing is sent. None: there is no way."""
    try:
        family, *_, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except OSError:
        return None


def interfaces() -> dict[str, list[str]]:
    """IP addresses by interface, of the interfaces that are up or down."""
    kinds = (socket.AF_INET, socket.AF_INET6)
    return {
        name: [entry.address.split("%")[0] for entry in entries if entry.family in kinds]
        for name, entries in psutil.net_if_addrs().items()
    }
