"""Waits that have a limit, and that no real job shows (docs/studies/checks.md lists all of them)."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import torch.distributed as dist

from llcg_dist.cli.launch import hosts
from llcg_dist.cli.launch.attendance import Attendance
from llcg_dist.cli.launch.hosts import JobStore
from llcg_dist.comm import job_board
from llcg_dist.comm.job_board import JobBoard
from llcg_dist.comm.link_maker import LinkMaker
from llcg_dist.errors import UserError
from llcg_dist.job import run_dir
from llcg_dist.job.run_dir import RunLock


@contextmanager
def within(seconds: float) -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < seconds


def test_gloo_waits_for_a_rank_that_does_not_connect_as_long_as_ranks_may_join(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    maker = LinkMaker(0, "gloo", dist.HashStore(), None)
    with within(20), pytest.raises(RuntimeError, match="(?i)time"):
        maker.link(1, timedelta(seconds=1), 0)


def test_a_rank_that_ends_does_not_wait_for_a_store_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hangs:
        def compare_set(self, *arguments: str) -> None:
            threading.Event().wait(60)

        def check(self, keys: list[str]) -> bool:
            return bool(threading.Event().wait(60))

    board = JobBoard(Hangs(), Hangs(), 2)
    monkeypatch.setattr(job_board, "_STORE_SECONDS", 0.2)
    with within(20):
        board.record_failure("a reason")
        assert board.wait_for_failure(0.2) is None


def test_the_head_does_not_wait_for_ever_for_hosts_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "_WAIT_FOR_OTHERS_SECONDS", 0.3)
    store = JobStore(None, None)
    other = Attendance(store.store)
    other.come()  # and does not leave
    with within(20):
        store.leave(wait_for_others=True)


def test_a_job_does_not_wait_for_ever_for_the_one_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_dir, "_OLD_JOB_WAIT_SECONDS", 0.3)
    with RunLock(tmp_path), within(20), pytest.raises(UserError, match="another job is running in it"):
        RunLock(tmp_path)
