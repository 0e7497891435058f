"""A thin process in a rank's place that starts the rank's worker below itself, and again when a machine's has died.

torchrun's agent ends all ranks when one ends: with cluster.on_loss=go_on it sees the supervisor, which lives on. That
opens nothing and has one thread, so that a worker can be forked from it at any time.
"""

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llcg_dist.data.child_process import die_with_parent
from llcg_dist.job.failure_file import fail, forget_failure
from llcg_dist.job.forked_process import show_command_line
from llcg_dist.records.console import print_error

_PASSED_ON = (signal.SIGTERM, signal.SIGINT)
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.2, 30.0
"""Seconds before a worker is started again: the first time, and at most; each pause is twice as long as the last."""


_START_SECONDS = 60.0
"""How much longer a worker's first sign of life may take than the next."""
_STUCK = "stuck"
"""The role of a server's worker that was killed for its silence."""
TICKET_VARIABLE = "LLCG_TICKET"
"""Of the environment: what a rank needs that takes the place of one on a host that is gone (comm/running_job.py)."""


@dataclass(frozen=True)
class Situation:
    """What a worker is told when it begins, and what its supervisor knows of it."""

    workers_before: int = 0
    """How many its supervisor has started before."""
    ticket: dict[str, Any] | None = None
    """What the ranks have agreed on (comm/torch_dist.py), where the job runs and goes on without this one."""

    @classmethod
    def at_first(cls) -> "Situation":
        given = os.environ.get(TICKET_VARIABLE)
        return cls(ticket=json.loads(given) if given else None)


class SupervisorLink:
    """A worker's end of the pipe to its supervisor; without one (on_loss=fail) nobody is told anything."""

    def __init__(self, situation: Situation | None = None, pipe: int | None = None) -> None:
        self.situation, self._pipe = situation or Situation(), pipe

    def joined(self, ticket: dict[str, Any]) -> None:
        self._tell("ticket", ticket)

    def serves(self) -> None:
        """This worker is the server: its end is the job's."""
        self._tell("role", "server")

    def leaves(self) -> None:
        """The run is over, and the heartbeat has ended: nobody waits for a sign of life any more."""
        self._tell("role", "done")

    def trains(self) -> None:
        """This worker is a machine, and the rounds begin: from here on the job goes on without it."""
        self._tell("role", "machine")

    def beat(self) -> None:
        """A sign of life."""
        self._tell("beat", None)

    def _tell(self, what: str, value: Any) -> None:
        if self._pipe is not None:
            with suppress(BlockingIOError, BrokenPipeError):  # nobody reads: what is full is not waited for
                os.write(self._pipe, json.dumps([what, value]).encode() + b"\n")


class Supervisor:
    """Runs `work(link)`, which returns an exit code, in a process below this one."""

    def __init__(self, work: Callable[[SupervisorLink], int], silence: float, max_returns: int) -> None:
        """A worker that gives no sign of life for `silence` seconds is killed. `max_returns`: how often a machine's is
        started again."""
        self._work, self._silence, self._max_returns = work, silence, max_returns
        self._command = [os.fsdecode(word) for word in Path("/proc/self/cmdline").read_bytes().split(b"\0")[:-1]]
        self._pid, self._stopping = 0, False

    def run(self) -> int:
        """The exit code of the rank: that of its last worker, or 0 where the job goes on without this machine."""
        for signal_ in _PASSED_ON:
            signal.signal(signal_, self._pass_on)
        pause, situation = _SHORTEST_PAUSE, Situation.at_first()
        while True:
            status, role, ticket = self._run_worker(situation)
            code = os.waitstatus_to_exitcode(status)
            if role == _STUCK:  # machines would wait for it, and for each other, for ever
                seconds = f"{self._silence:g} s (cluster.timeout={self._silence:g})"
                return fail(f"rank 0 (server): gave no sign of life for {seconds}, and was killed", exit_code=1)
            if self._stopping or code == 0 or role != "machine" or ticket is None:
                return self._end_like(code)
            number = situation.workers_before + 1
            if code == 2 and number == 1 and situation.ticket:
                return code  # its host joins a job that runs, with a wrong part, say: it ends alone
            if code == 2 or number > self._max_returns:
                print_error(f"this machine stays away: its worker ended with {code}, {number} time(s)")
                return 0  # not a failure: the agent would end the ranks that go on
            forget_failure()
            self._sleep(pause)
            pause, situation = min(2 * pause, _LONGEST_PAUSE), Situation(number, ticket)

    def _run_worker(self, situation: Situation) -> tuple[int, str | None, dict[str, Any] | None]:
        """Its exit status, and what it said: its role, and the ticket of its job."""
        reading, writing = os.pipe2(os.O_NONBLOCK)
        signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
        if self._stopping:  # meanwhile
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
            return 128 + signal.SIGTERM << 8, None, None
        self._pid = os.fork()
        if self._pid == 0:
            os.close(reading)
            self._become_worker(SupervisorLink(situation, writing))
        os.close(writing)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
        others = {name: value for name, value in os.environ.items() if name not in ("RANK", "LOCAL_RANK")}
        show_command_line([sys.executable, "-m", "llcg_dist.job.supervisor"], others)
        try:
            return self._watch(reading, situation)
        finally:
            os.close(reading)

    def _watch(self, reading: int, situation: Situation) -> tuple[int, str | None, dict[str, Any] | None]:
        said: dict[str, Any] = {"role": None, "ticket": situation.ticket}
        if situation.ticket:  # whatever happens to it from now on, the others do not wait for it
            said["role"] = "machine"
        rest, heard, ended = b"", time.monotonic() + _START_SECONDS, os.pidfd_open(self._pid)
        try:
            while True:
                ready, _, _ = select.select([reading, ended], [], [], 1.0)
                if reading in ready and (new := os.read(reading, 1 << 16)):
                    *lines, rest = (rest + new).split(b"\n")
                    said |= dict(json.loads(line) for line in lines)
                    heard = time.monotonic()
                elif ended in ready:
                    pid, self._pid = self._pid, 0  # a signal that comes later is for whoever has its number then
                    return os.waitpid(pid, 0)[1], said["role"], said["ticket"]
                elif reading in ready:  # closed, and it still ends
                    time.sleep(0.01)
                if said["role"] in ("machine", "server") and time.monotonic() - heard > self._silence:
                    os.kill(self._pid, signal.SIGKILL)  # stopped, or stuck: nobody else can end it
                    heard = time.monotonic()
                    said["role"] = _STUCK if said["role"] == "server" else "machine"
        finally:
            os.close(ended)

    def _become_worker(self, link: SupervisorLink) -> None:
        """In the forked process; it never returns."""
        code = 1
        try:
            die_with_parent()
            for signal_ in _PASSED_ON:  # until the worker has handlers of its own
                signal.signal(signal_, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
            show_command_line(self._command, os.environ)
            code = self._work(link)
            sys.stdout.flush()
        finally:
            os._exit(code)

    def _pass_on(self, signal_: int, frame: object) -> None:
        self._stopping = True
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal_)

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._stopping and time.monotonic() < end:
            time.sleep(0.05)

    def _end_like(self, code: int) -> int:
        """Ends as the worker did, by the same signal where one has killed it, so that the launcher names it."""
        if code >= 0:
            return code
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
        return 128 - code
