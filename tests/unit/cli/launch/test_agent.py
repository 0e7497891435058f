"""The agent of a host: it goes on where a rank is killed that was done."""

import multiprocessing
import os
import signal
import threading
import time

from llcg_dist.cli.launch.agent import EndSignal


def test_a_rank_that_is_killed_while_it_waits_for_the_others_holds_nobody_up() -> None:
    context = multiprocessing.get_context("fork")
    event = context.Event()
    rank = context.Process(target=event.wait)
    rank.start()
    end = time.monotonic() + 20
    while not event._cond._sleeping_count.get_value() and time.monotonic() < end:  # type: ignore[attr-defined]
        time.sleep(0.01)
    assert rank.pid
    os.kill(rank.pid, signal.SIGKILL)
    rank.join(20)
    setting = threading.Thread(target=EndSignal(event).set, daemon=True)
    setting.start()
    setting.join(20)
    assert not setting.is_alive()
