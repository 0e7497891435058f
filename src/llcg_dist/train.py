"""What a rank runs: `torchrun … -m llcg_dist.train [overrides]`. Rank 0 is the server, ranks 1..P are the machines."""

import contextlib
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence

from llcg_dist.config.cluster import OnLoss
from llcg_dist.config.compose import load_config
from llcg_dist.config.own_files import find_own_files
from llcg_dist.config.schema import Config
from llcg_dist.errors import PeerLostError, PeerTimeoutError, TrainingError, UserError, os_error_line
from llcg_dist.job.checkpoint import CheckpointWriter
from llcg_dist.job.failure_file import fail
from llcg_dist.job.process import (
    Rank,
    Stopped,
    die_with_launcher,
    ignore_signals,
    install_signal_handlers,
    log_file,
    log_thread_failures,
)
from llcg_dist.job.run import run
from llcg_dist.job.supervisor import Supervisor, SupervisorLink

log = logging.getLogger("llcg_dist.train")  # __name__ is __main__ in a rank

_CAUSE_WAIT_SECONDS = 5.0
"""How long a rank that ends because of another waits for that one to say why. The launcher ends it earlier where it
sees the other rank's end first."""


def main(overrides: Sequence[str]) -> int:
    """Exit code 0; 2 for a user's mistake; 143 or 130 after SIGTERM or SIGINT; 1 for anything else."""
    die_with_launcher()
    log_thread_failures()
    return _guarded(lambda: _explained(Rank(), lambda me: _run(overrides, me)))


def _guarded(action: Callable[[], int]) -> int:
    """The exit code of the action, or of the signal that stops it."""
    try:
        try:
            install_signal_handlers()
            code = action()
        finally:
            ignore_signals()  # in here: a signal that comes just before is still caught below
    except Stopped as stopped:  # the round in flight is dropped
        code = 128 + stopped.signal
    finally:
        CheckpointWriter.finish_all()  # checkpoints that are being written become complete
    return code


def _run(overrides: Sequence[str], me: Rank) -> int:
    config = load_config(find_own_files(overrides))
    if not _is_supervised(config):
        run(config, me)
        return 0

    def work(link: SupervisorLink) -> int:
        def run_below(worker: Rank) -> int:
            run(config, worker)
            return 0

        return _guarded(lambda: _explained(Rank(link), run_below))

    return Supervisor(work, config.cluster.timeout, config.cluster.max_returns).run()


def _is_supervised(config: Config) -> bool:
    """Whether a rank may die without ending the others: their launcher must not see it die."""
    return config.cluster.on_loss == OnLoss.go_on and int(os.environ.get("WORLD_SIZE", 1)) > 1


def _explained(me: Rank, action: Callable[[Rank], int]) -> int:
    """The reason of a failure goes to stderr and to the launcher."""
    try:
        return action(me)
    except UserError as error:
        if me.rank != 0:  # the server has the terminal: it says it, once
            me.failure_of_another(_CAUSE_WAIT_SECONDS)
        return _fail(me, str(error), exit_code=2)
    except PeerLostError as error:
        cause = None if isinstance(error, PeerTimeoutError) else me.failure_of_another(_CAUSE_WAIT_SECONDS)
        return _fail(me, cause or f"{me}: {me.with_parts(str(error))}", exit_code=1)
    except TrainingError as error:
        return _fail(me, f"{me}: {error}", exit_code=1)
    except OSError as error:
        log.exception("%s failed", me)
        return _fail(me, f"{me}: {os_error_line(error)}", exit_code=1)
    except (Exception, SystemExit) as error:  # a library, or a user's class, may ask to exit
        log.exception("%s failed", me)
        if not log_file():
            traceback.print_exc()
        where = f" (traceback in {log_file()})" if log_file() else ""
        return _fail(me, f"{me}: {type(error).__name__}: {error}{where}", exit_code=1)


def _fail(me: Rank, message: str, exit_code: int) -> int:
    """Tells the user, the launcher, and the other ranks. A launcher that has seen another rank's end must not stop this
    one between what it prints and what it writes: the same line would be printed twice."""
    ignore_signals()
    code = fail(message, exit_code)
    me.record_failure(message)
    return code


if __name__ == "__main__":
    code = main(sys.argv[1:])
    with contextlib.suppress(OSError):  # a full disk must not hide the exit code
        sys.stdout.flush()
    # Not sys.exit: after a failure, torch's own threads may still wait for ranks that are gone.
    os._exit(code)
