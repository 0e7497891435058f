"""What a rank runs: `torchrun … -m llcg_dist.train [overrides]`. Rank 0 is the server, ranks 1..P are the machines."""

import logging
import os
import sys
import time
import traceback
from collections.abc import Sequence

from llcg_dist.config.compose import load_config
from llcg_dist.errors import PeerLostError, PeerTimeoutError, TrainingError, UserError
from llcg_dist.job.checkpoint import CheckpointWriter
from llcg_dist.job.process import Rank, Stopped, die_with_launcher, fail, ignore_signals, install_signal_handlers
from llcg_dist.job.run import run

log = logging.getLogger("llcg_dist.train")  # __name__ is __main__ in a rank

_FIRST_FAILURE_WAIT_SECONDS = 5.0
"""Seconds a rank that lost its peer stays, so that the launcher sees the dead rank first and names it."""

_SERVER_REPORTS_FIRST_SECONDS = 2.0
"""Seconds a machine stays when all ranks end for the same reason: the server has the terminal, and says it once."""


def main(overrides: Sequence[str]) -> int:
    """Exit code 0; 2 for a user's mistake; 143 or 130 after SIGTERM or SIGINT; 1 for anything else."""
    die_with_launcher()
    install_signal_handlers()
    try:
        return _run_and_explain(overrides)
    except Stopped as stopped:  # the round in flight is dropped
        return 128 + stopped.signal
    finally:
        ignore_signals()
        CheckpointWriter.finish_all()  # what is being saved becomes whole


def _run_and_explain(overrides: Sequence[str]) -> int:
    """The reason of a failure goes to stderr and to the launcher."""
    me = Rank()
    try:
        run(load_config(overrides), me)
    except UserError as error:
        if me.rank != 0:
            time.sleep(_SERVER_REPORTS_FIRST_SECONDS)
        return fail(str(error), exit_code=2)
    except (TrainingError, PeerTimeoutError) as error:
        return fail(f"{me}: {error}", exit_code=1)
    except PeerLostError as error:
        time.sleep(_FIRST_FAILURE_WAIT_SECONDS)
        return fail(f"{me}: {error}", exit_code=1)
    except Exception as error:
        log.exception("%s failed", me)
        traceback.print_exc()
        return fail(f"{me}: {type(error).__name__}: {error}", exit_code=1)
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # Not sys.exit: after a failure, torch's own threads may still wait for ranks that are gone.
    os._exit(code)
