"""What a launcher says where a job fails: one line, and the exit code."""

import contextlib
import signal
import traceback
from pathlib import Path
from typing import Protocol

from llcg_dist.comm.rendezvous import swapped_rank
from llcg_dist.errors import first_line, os_error_line
from llcg_dist.job.process import name_of
from llcg_dist.records.console import print_error
from llcg_dist.records.reading import read_object

_ABORTED = " (as Gloo does with a rank to which another sends a message longer than announced: llcg help security)"


class Failure(Protocol):
    """The end of a rank, as torchrun's agent describes it."""

    exitcode: int
    error_file: str
    """Where the rank says why, if it could."""

    def signal_name(self) -> str: ...


def report_failure(rank: int, failure: Failure, run_dir: Path, rank_0_has_terminal: bool) -> int:
    """Prints one line about the rank that failed first, unless rank 0 has printed one; returns the exit code."""
    error_file = Path(failure.error_file)
    # With these codes a rank says why, although a disk that is full may keep it from writing that to its file.
    rank_0_said_it = (rank == 0 and failure.exitcode in (1, 2)) or _message(error_file.parents[1] / "0" / "error.json")
    if not (rank_0_has_terminal and rank_0_said_it):
        ended = f"{_rank_name(rank, run_dir)} {_ending(failure)}; its log is under {run_dir / 'logs'}"
        print_error(_message(error_file) or ended)
    return 2 if failure.exitcode == 2 else 1


def report_launcher_error(error: Exception, run_dir: Path) -> int:
    """Prints one line about what torchrun's agent raised, and keeps the traceback; returns the exit code."""
    log = run_dir / "logs" / "launcher.log"
    with contextlib.suppress(OSError):
        log.write_text("".join(traceback.format_exception(error)))
    reason = os_error_line(error) if isinstance(error, OSError) else f"{type(error).__name__}: {first_line(error)}"
    print_error(f"the launcher of the ranks failed: {reason}" + (f"; traceback in {log}" if log.exists() else ""))
    return 1


def _ending(failure: Failure) -> str:
    how = f"was killed by {failure.signal_name()}" if failure.exitcode < 0 else f"ended with {failure.exitcode}"
    return how + (_ABORTED if failure.exitcode == -signal.SIGABRT else "")


def _message(error_file: Path) -> str:
    """What a rank has written about its end; empty where it has not."""
    content = (read_object(error_file) or {}).get("message")
    message = content.get("message") if isinstance(content, dict) else None
    return message if isinstance(message, str) else ""


def _rank_name(torchrun_rank: int, run_dir: Path) -> str:
    """The rank's name with its part, where the server has recorded the ranks on this host's disk."""
    ranks = read_object(run_dir / "logs" / "ranks.json") or {}
    server, of_parts = ranks.get("server"), ranks.get("rank_of_part")
    if not isinstance(server, int) or not isinstance(of_parts, list):
        return name_of(torchrun_rank, None)
    rank = swapped_rank(torchrun_rank, server)
    return name_of(rank, of_parts.index(rank) if rank in of_parts else None)
