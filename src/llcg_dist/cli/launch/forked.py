"""Ranks and sweep jobs as processes forked from a fork server that has imported everything they need.

Importing torch, PyG and numba takes three seconds of a core: nine ranks that each import them on two cores would start
slowly.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from typing import Any

from llcg_dist.job.forked_process import show_command_line


def fork_server(threads: int) -> Any:
    """Starts the fork server unless it runs; returns its multiprocessing context at once, while it still imports.

    `threads`: OMP_NUM_THREADS of everything that is forked from it.
    """
    os.environ["OMP_NUM_THREADS"] = str(threads)  # libraries read it when they are imported
    multiprocessing.set_start_method("forkserver", force=True)  # joblib sets its own in its workers
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["llcg_dist.cli.launch.fork_server"])
    forkserver.ensure_running()
    return context


def run_rank(overrides: Sequence[str], variables: Mapping[str, str]) -> None:
    """Runs a rank in a forked process, as `python -m llcg_dist.train` does in a new one.

    `variables`: of the environment, which otherwise is that of the fork server and torchrun's.
    """
    from llcg_dist.train import main

    os.environ.update(variables)
    show_command_line([sys.executable, "-m", "llcg_dist.train", *overrides], os.environ)
    code = main(overrides)
    with contextlib.suppress(OSError):  # a full disk: torch would leave half an error file that fails the launcher
        sys.stdout.flush()
    if code:
        os._exit(code)  # not sys.exit: after a failure torch's threads may still wait for ranks that are gone
    # The rank is done, but the launcher terminates it only when all ranks are: main has left SIGTERM ignored.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
