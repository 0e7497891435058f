"""Who is silent, and who does not move on? Limits on a rank's silence and on its standing still, never on a round.

Every rank writes a growing number and where its main thread is to a shared store, from a thread that runs while the
main thread computes or waits. The server reads everyone's, a machine reads the server's: two look-ups per machine and
beat, however many there are.

A rank that waits for another stands still for that one's sake, and is not blamed. Where all ranks wait, nobody is left
to wait for: the server, which sees them all, then ends the job.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from llcg_dist.comm.rendezvous import Store
from llcg_dist.data import progress
from llcg_dist.data.progress import Report
from llcg_dist.errors import first_line

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """Seconds after which a rank is given up."""

    silence: float
    """cluster.timeout: without a beat."""
    stall: float | None = None
    """cluster.stall_timeout: with beats, in the same place; None: for as long as it takes."""

    @property
    def beat_interval(self) -> float:
        """Seconds between a rank's beats."""
        return min(1.0, self.silence / 5, (self.stall or self.silence) / 5)


@dataclass(frozen=True)
class Heard:
    """A rank's last beat, and when it came; where the rank is, and since when."""

    beat: bytes
    when: float
    report: Report
    since: float

    def and_now(self, beat: bytes, now: float) -> "Heard":
        """With what was read a moment ago: a new beat, or the same as before."""
        if beat == self.beat:
            return self
        try:
            found = Report.decode(beat.decode().partition(" ")[2])
        except ValueError:  # of a store without seals, anybody may have written it: a sign of life, no more
            found = self.report
        moved = found.moves != self.report.moves
        return Heard(beat, now, found, now if moved else self.since)


class Heartbeat:
    """Calls `on_failure(message)` once, from its thread, when a watched rank ({rank: name}) or the store itself says
    nothing for too long, or a watched rank does not move on."""

    def __init__(
        self,
        store: Store,
        rank: int,
        watched: Mapping[int, str],
        limits: Limits,
        on_failure: Callable[[str], None],
    ) -> None:
        """`watched` may have this rank itself, which is judged for standing still."""
        self._store, self._rank, self._limits, self._on_failure = store, rank, limits, on_failure
        self._names = {other: name for other, name in watched.items() if other != rank}
        self._own_name = {rank: watched[rank]} if rank in watched else {}
        now = time.monotonic()
        self._heard = {other: Heard(b"", now, Report(), now) for other in (rank, *watched)}
        self._incarnations: dict[int, int] = {}
        self._store_answered = now
        self.on_loss: Callable[[int, str], None] | None = None
        """Hears instead of `on_failure` of a watched rank that is given up, which is then not watched any more."""
        self.on_beat: Callable[[], None] = lambda: None
        """Called at every beat."""
        self.loss_key: str | None = None
        """Where the server says from which process of this rank on it is not given up."""
        self._is_given_up = False
        self._beats = 0
        self._done = threading.Event()
        self._changing = threading.Lock()
        """Who is watched changes under it: three threads do that."""
        # The store call itself can hang where a network is cut, hence one thread to beat and one to judge.
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._keep_beating, self._judge)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._done.set()

    def watch(self, rank: int, name: str, incarnation: int) -> None:
        """Another process has taken the place of a rank that was given up."""
        now = time.monotonic()
        with self._changing:
            self._incarnations[rank] = incarnation
            self._heard = {**self._heard, rank: Heard(b"", now, Report(), now)}
            self._names = {**self._names, rank: name}

    def forget(self, rank: int) -> None:
        """The rank is not watched any more."""
        with self._changing:
            self._names = {other: name for other, name in self._names.items() if other != rank}
            self._heard = {other: heard for other, heard in self._heard.items() if other != rank}

    def set_incarnation(self, rank: int, number: int) -> None:
        """Which process of a rank it is; its beats are apart from those of the processes before."""
        self._incarnations[rank] = number

    def _keep_beating(self) -> None:
        while not self._done.wait(self._limits.beat_interval if self._beats else 0):
            try:
                self.beat()
            except RuntimeError as error:  # torch raises its DistNetworkError and kin from RuntimeError
                log.warning("heartbeat: %s", first_line(error))

    def beat(self) -> None:
        """Writes this rank's next beat and reads those of the watched ranks."""
        self._beats += 1
        own = f"{self._beats} {progress.report().encode()}"
        self._store.set(self._key(self._rank), own)
        self._hear(self._rank, own.encode())
        for other in self._names:
            if self._store.check([self._key(other)]):
                self._hear(other, self._store.get(self._key(other)))
        if self.loss_key and self._store.check([self.loss_key]):
            first_wanted = self._store.get(self.loss_key)
            if first_wanted.isdigit():  # without a key anybody may have written anything
                self._is_given_up = int(first_wanted) > self._incarnations.get(self._rank, 0)
        self._store_answered = time.monotonic()

    def _hear(self, rank: int, beat: bytes) -> None:
        with self._changing:
            if rank in self._heard:  # not forgotten meanwhile
                self._heard = {**self._heard, rank: self._heard[rank].and_now(beat, time.monotonic())}

    def _key(self, rank: int) -> str:
        incarnation = self._incarnations.get(rank, 0)
        return f"beat/{rank}" + (f"/{incarnation}" if incarnation else "")

    def _judge(self) -> None:
        while not self._done.wait(self._limits.beat_interval / 2):
            now = time.monotonic()
            self.on_beat()
            for rank, why in self.given_up(now).items() if self.on_loss else ():
                self.forget(rank)
                assert self.on_loss is not None
                self.on_loss(rank, why)
            gone_on = "the server has gone on without this machine" if self._is_given_up else None
            message = gone_on or self.silent(now) or self.stalled(now)
            if message and not self._done.is_set():
                self._done.set()
                self._on_failure(message)

    def given_up(self, now: float) -> dict[int, str]:
        """Who is silent or does not move on, and for how long, one by one. Where the store does not answer, nobody is
        heard, and nobody is blamed for it."""
        found, limit = {}, self._limits.silence
        for rank, silence in self._silence(self._store_answered).items():
            if silence > limit:
                found[rank] = f"nothing heard for {silence:.0f} s (cluster.timeout={limit:g})"
        for rank, heard in self._stuck(now, self._names).items():
            seconds = f"{now - heard.since:.0f} s (cluster.stall_timeout={self._limits.stall:g})"
            found.setdefault(rank, f"alive, but not moving on at {heard.report.place} for {seconds}")
        return found

    def silent(self, now: float) -> str | None:
        """Whom nobody has heard for too long, and for how long."""
        limit = self._limits.silence
        if now - self._store_answered > limit:
            return f"no answer from the job's store on rank 0's host for {now - self._store_answered:.0f} s"
        if self.on_loss:
            return None  # `given_up` finds them, by what was last read: the others' job does not fail for them
        names, last = self._names, self._silence(now)
        silent = [f"{names[rank]} for {last[rank]:.0f} s" for rank in names.keys() & last if last[rank] > limit]
        return f"nothing heard from {', '.join(sorted(silent))} (cluster.timeout={limit:g})" if silent else None

    def stalled(self, now: float) -> str | None:
        """Who is alive and does not move on, where, and for how long."""
        limit = self._limits.stall
        if limit is None:
            return None
        setting = f"(cluster.stall_timeout={limit:g})"
        names = self._names | self._own_name
        stuck = [
            f"{names[rank]} at {heard.report.place} for {now - heard.since:.0f} s"
            for rank, heard in self._stuck(now, names).items()
        ]
        if stuck:
            return f"alive, but not moving on: {', '.join(stuck)} {setting}"
        everyone = self._heard.values()
        if self._rank == 0 and len(everyone) > 1 and all(h.report.waits and now - h.since > limit for h in everyone):
            return f"all ranks wait for each other, and none has moved on for {limit:.0f} s {setting}"
        return None

    def _silence(self, now: float) -> dict[int, float]:
        """Seconds since each watched rank's last beat."""
        heard = self._heard
        return {rank: now - heard[rank].when for rank in sorted(self._names) if rank in heard}

    def _stuck(self, now: float, ranks: Iterable[int]) -> dict[int, Heard]:
        """Those of these ranks that are alive, wait for nobody and have not moved on for too long."""
        limit, heard = self._limits.stall, self._heard
        if limit is None:
            return {}
        watched = {rank: heard[rank] for rank in sorted(ranks) if rank in heard}
        return {rank: last for rank, last in watched.items() if now - last.since > limit and not last.report.waits}
