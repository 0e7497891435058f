"""What a rank computes on, with how many threads, forked or not."""

import pytest

from llcg_dist.errors import UserError
from llcg_dist.job import devices
from llcg_dist.job.devices import choose_device, forks_ranks, server_threads, threads_per_rank


@pytest.mark.parametrize(
    ("requested", "gpus", "local_rank", "device"),
    [
        ("auto", 0, 0, "cpu"),
        ("auto", 2, 0, "cuda:0"),
        ("auto", 2, 1, "cuda:1"),
        ("auto", 2, 4, "cuda:0"),
        ("cpu", 2, 1, "cpu"),
        ("cuda", 1, 3, "cuda:0"),
    ],
)
def test_ranks_of_a_host_take_its_gpus_in_turn(requested: str, gpus: int, local_rank: int, device: str) -> None:
    assert choose_device(requested, gpus, local_rank) == device


def test_a_gpu_that_is_not_there() -> None:
    with pytest.raises(UserError, match=r"cluster\.device=cuda"):
        choose_device("cuda", 0, 0)


def test_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(8)))
    assert threads_per_rank(3, 100) == 3
    assert threads_per_rank(0, 3) == 2
    assert threads_per_rank(0, 9) == 1


@pytest.mark.parametrize(
    ("requested", "device", "gpu", "forks"),
    [
        ("auto", "auto", False, True),
        ("auto", "auto", True, False),
        ("auto", "cuda", True, False),
        ("auto", "cpu", True, True),
        ("fork", "cuda", True, True),
        ("spawn", "cpu", False, False),
    ],
)
def test_ranks_are_forked_unless_they_may_use_a_gpu(requested: str, device: str, gpu: bool, forks: bool) -> None:
    assert forks_ranks(requested, device, gpu) is forks


@pytest.mark.parametrize(
    ("requested", "threads", "ranks_here", "ahead"),
    [("auto", 1, 3, True), ("auto", 1, 4, False), ("auto", 2, 2, False), ("on", 1, 9, True), ("off", 1, 1, False)],
)
def test_a_batch_is_drawn_ahead_where_a_core_is_free(
    requested: str, threads: int, ranks_here: int, ahead: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(4))
    assert devices.draws_ahead(requested, threads, ranks_here) is ahead


@pytest.mark.parametrize(
    ("requested", "threads", "machines_here", "expected"),
    [("auto", 1, 4, 4), ("auto", 1, 7, 1), ("auto", 2, 7, 2), ("auto", 1, 0, 8), ("auto", 1, None, 1), (3, 1, 7, 3)],
)
def test_threads_of_an_evaluation(
    requested: int | str, threads: int, machines_here: int | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On eight cores; machines in the server's own process leave the others to other processes."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    assert server_threads(requested, threads, machines_here) == expected
