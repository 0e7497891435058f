"""A torch.distributed store whose values are sealed with the job's key, over one that anybody may write to.

Between torch (rendezvous, Gloo, NCCL, our own values) and the store that listens: what is written is sealed, what is
read is opened before anyone decodes it. A value that is not authentic, or older than one that this process has seen in
its place, is ignored and counted: what this process last saw there stands and is put back; where it saw nothing, the
place counts as empty, and whoever waits for a value goes on waiting.

Counters (`add`) are numbers that the store itself adds up, so they carry no seal: anybody who reaches the store can
change them. They may say when to go on or to end, never what to do. Keys can be deleted by anybody, too.
"""

import logging
import threading
import time
from datetime import timedelta

import torch.distributed as dist

from llcg_dist.comm.seal import Seal, SealedValue

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # launchers have no log file, and say at the end how many values were ignored

_POLL_SECONDS = 0.02


class SealedStore(dist.Store):
    """Seals what is written to the store beneath it, and hands out what is authentic.

    Python must hold on to this object as long as a C++ object such as PrefixStore uses it.
    """

    timeout: timedelta
    """torch's own, which its annotations lack: how long `get` and `wait` may take."""

    def __init__(self, beneath: dist.Store, key: bytes) -> None:
        super().__init__()
        self._beneath, self._seal = beneath, Seal(key)
        self._newest: dict[str, SealedValue] = {}
        """The newest authentic value that this process has seen under each key."""
        self._refused: dict[str, bytes] = {}
        """The last value under each key that was ignored, so that it is counted once, however often it is read."""
        self._lock = threading.Lock()
        self.ignored = 0
        """How many values were not authentic."""
        self.set_timeout(beneath.timeout)  # type: ignore[attr-defined]

    def set(self, key: str, value: str | bytes) -> None:
        """Stores the value under a counter above that of the value which it replaces."""
        if self._beneath.check([key]):
            self._standing(key)
        sealed = self._close(key, _bytes(value))
        self._beneath.set(key, sealed.sealed)  # type: ignore[arg-type]
        self._remember(key, sealed)

    def get(self, key: str) -> bytes:
        """The authentic value, for which it waits as long as the store's timeout."""
        if self._beneath.timeout != self.timeout:  # type: ignore[attr-defined]
            self._beneath.set_timeout(self.timeout)
        standing = self._standing(key)  # the store beneath waits where there is nothing at all
        return (standing or self._wait_for([key], self.timeout)[0]).content

    def check(self, keys: list[str]) -> bool:
        """Whether there is an authentic value under every key. A counter is none: `add(key, 0)` reads it."""
        return self._beneath.check(keys) and all(self._standing(key) for key in keys)

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Waits until there is an authentic value under every key."""
        self._wait_for(keys, timeout or self.timeout)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Stores the desired value where the expected one stands, or where both are none; what then stands there."""
        expected, desired = _bytes(expected_value), _bytes(desired_value)
        while True:
            stored = self._beneath.get(key) if self._beneath.check([key]) else None
            standing = self._judge(key, stored) if stored is not None else None
            if (standing.content if standing else b"") != expected:
                return standing.content if standing else expected
            value = self._close(key, desired)
            # By the bytes that were just looked at: whoever wrote in between, genuine or not, is looked at first.
            if self._beneath.compare_set(key, stored or b"", value.sealed) == value.sealed:  # type: ignore[arg-type]
                self._remember(key, value)
                return desired

    def add(self, key: str, value: int) -> int:
        """A counter, which carries no seal."""
        return self._beneath.add(key, value)

    def delete_key(self, key: str) -> bool:
        return self._beneath.delete_key(key)

    def num_keys(self) -> int:
        return self._beneath.num_keys()

    deleteKey, getNumKeys = delete_key, num_keys  # noqa: N815 - the names by which C++ calls them

    def multi_get(self, keys: list[str]) -> list[bytes]:
        return [self.get(key) for key in keys]

    def has_extended_api(self) -> bool:
        """False: C++ builds append and multi_set from compare_set and set."""
        return False

    def clone(self) -> "SealedStore":
        """This object itself: a copy that only C++ holds would lose its Python methods."""
        return self

    def _close(self, key: str, content: bytes) -> SealedValue:
        """A value newer than all that were seen under this key. The clock keeps a process that has seen none from
        beginning below those that others have seen; clocks that differ do no harm."""
        with self._lock:
            newest = self._newest.get(key)
        return self._seal.close(key, max(newest.counter + 1 if newest else 0, time.time_ns()), content)

    def _remember(self, key: str, value: SealedValue) -> None:
        with self._lock:
            newest = self._newest.get(key)
            if newest is None or value.counter > newest.counter:
                self._newest[key] = value

    def _standing(self, key: str) -> SealedValue | None:
        """The authentic value under a key that holds something; puts it back where something else lies in its place."""
        stored = self._beneath.get(key)
        standing = self._judge(key, stored)
        if standing and standing.sealed != stored:
            self._beneath.compare_set(key, stored, standing.sealed)  # type: ignore[arg-type]
        return standing

    def _judge(self, key: str, stored: bytes) -> SealedValue | None:
        """The stored value where it is authentic and not older than the newest, which otherwise stands."""
        opened = self._seal.open(key, stored)
        with self._lock:
            newest = self._newest.get(key)
            if opened and (newest is None or opened.counter >= newest.counter):
                self._newest[key] = opened
                self._refused.pop(key, None)
                return opened
            if self._refused.get(key) != stored:
                self._refused[key] = stored
                self._count(key)
            return newest

    def _count(self, key: str) -> None:
        self.ignored += 1
        if self.ignored & (self.ignored - 1) == 0:  # a flood of them must not fill the disk
            log.warning("values in the job's store that are not authentic: %d ignored, now %r", self.ignored, key)

    def _wait_for(self, keys: list[str], limit: timedelta) -> list[SealedValue]:
        """The authentic values under these keys, as soon as all are there."""
        end = time.monotonic() + limit.total_seconds()
        while True:
            self._beneath.wait(keys, timedelta(seconds=max(end - time.monotonic(), 0.001)))
            values = [value for key in keys if (value := self._standing(key))]
            if len(values) == len(keys):
                return values
            if time.monotonic() > end:
                raise dist.DistStoreError(f"wait timeout: no authentic value under {', '.join(keys)}")
            time.sleep(_POLL_SECONDS)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
