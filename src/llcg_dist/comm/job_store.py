"""The store of a job, as its host opens it and as others reach it, sealed where the job has a key.

Left to itself torch's TCPStore listens on every interface of the host: here it listens on one address.
"""

import os
import socket
from datetime import timedelta

import torch.distributed as dist

from llcg_dist.comm.network import listen_on
from llcg_dist.comm.sealed_store import SealedStore


def connect_store(limit: timedelta, hosts: bool, key: bytes | None) -> dist.Store:
    """The store at MASTER_ADDR:MASTER_PORT. torchrun's agent hosts it where it says so, else rank 0 does."""
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if hosts and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return sealed(host_store(listen_on(address, port), limit), key)
    return sealed(reach_store(address, port, limit), key)


def sealed(store: dist.Store, key: bytes | None) -> dist.Store:
    """The store with its values sealed; as it is where there is no key."""
    return SealedStore(store, key) if key else store


def under(store: dist.Store, prefix: str) -> dist.PrefixStore:
    """The keys below a prefix; the store itself must be held on to."""
    return dist.PrefixStore(prefix, store)


def ignored_values(store: dist.Store) -> str:
    """What to add to a message about someone who did not come: how many values of the store were not authentic."""
    if not isinstance(store, SealedStore) or not store.ignored:
        return ""
    return f"; {store.ignored} value(s) in the job's store were not sealed with this job's key and were ignored"


def host_store(listener: socket.socket, limit: timedelta) -> dist.TCPStore:
    """A store behind this socket and no other."""
    address, port = listener.getsockname()[:2]
    # The store owns the socket from here on, and closes it.
    return dist.TCPStore(
        address, port, is_master=True, timeout=limit, wait_for_workers=False, master_listen_fd=listener.detach()
    )


def reach_store(host: str, port: int, limit: timedelta) -> dist.TCPStore:
    """A store that another process hosts."""
    return dist.TCPStore(host, port, is_master=False, timeout=limit, wait_for_workers=False)
