"""Makes the process groups of one rank: its links, groups of two, and the machines' own group."""

import os
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from llcg_dist.comm.gpu_path import GpuPath
from llcg_dist.comm.links import Link, PlainLink, SealedLink
from llcg_dist.comm.session import Scope, Session, new_salt
from llcg_dist.comm.waiter import FOREVER


class LinkMaker:
    """Of a rank in one start of a job; links are sealed where there is a `scope`."""

    def __init__(self, rank: int, backend: str, store: dist.Store, scope: Scope | None) -> None:
        self._rank, self._backend, self._store, self._scope = rank, backend, store, scope
        self._device = dist.ProcessGroupGloo.create_device(interface=os.environ["GLOO_SOCKET_IFNAME"])

    def link(self, other: int, limit: timedelta, incarnation: int) -> Link:
        """A new link to this rank; one that is sealed has been proved to lead there."""
        store = dist.PrefixStore(f"link/{max(self._rank, other)}/{incarnation}", self._store)
        own = min(self._rank, 1)
        plain = PlainLink(1 - own, self._gloo(store, own, 2, limit), _gpu_path(store, own, self._backend))
        if self._scope is None:
            return plain
        link = SealedLink(plain, self._session(self._scope, store, other, limit, incarnation))
        link.prove(limit)
        return link

    def machine_group(self, size: int, limit: timedelta) -> tuple[Any, dict[int, Session]]:
        """The group of ranks 1..size-1, and where messages are sealed the keys for each of the others."""
        store = dist.PrefixStore("machines", self._store)
        group = self._gloo(store, self._rank - 1, size - 1, FOREVER)
        if self._scope is None:
            return group, {}
        others = [rank for rank in range(1, size) if rank != self._rank]
        return group, {rank: self._session(self._scope, store, rank, limit) for rank in others}

    def _session(self, scope: Scope, store: dist.Store, other: int, limit: timedelta, incarnation: int = 0) -> Session:
        """The keys of the link to another rank. The store is sealed, so a salt in it is the other's own."""
        salt, theirs = new_salt(), f"salt/{other}-{self._rank}"
        store.set(f"salt/{self._rank}-{other}", salt.hex())
        store.wait([theirs], limit)
        return Session(scope, (self._rank, other), (salt, bytes.fromhex(store.get(theirs).decode())), incarnation)

    def _gloo(self, store: dist.Store, rank: int, size: int, limit: timedelta) -> dist.ProcessGroupGloo:
        options: Any = dist.ProcessGroupGloo._Options()  # type: ignore[attr-defined]
        options._devices, options._threads, options._timeout = [self._device], 1, limit
        return dist.ProcessGroupGloo(store, rank, size, options)


def _gpu_path(store: dist.Store, rank: int, backend: str) -> GpuPath | None:
    """Between this rank's GPU and the other's, where the backend has it; None otherwise."""
    if "nccl" not in backend:
        return None
    options = dist.ProcessGroupNCCL.Options()
    options._timeout = FOREVER
    group = dist.ProcessGroupNCCL(dist.PrefixStore("nccl", store), rank, 2, options)
    return GpuPath(group, 1 - rank, f"cuda:{torch.cuda.current_device()}")
