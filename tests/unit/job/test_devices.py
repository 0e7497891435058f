"""What a rank computes on, with how many threads, forked or not."""

from pathlib import Path

import pytest

from llcg_dist.comm.rendezvous import choose_backend
from llcg_dist.errors import UserError
from llcg_dist.job import devices, handshake, open_run
from llcg_dist.job.devices import (
    choose_device,
    evaluation_device,
    forks_ranks,
    has_own_gpu,
    keeps_features,
    server_threads,
    threads_per_rank,
)
from tests.helpers.training import TINY, on_loopback


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


def placement(hosts: list[tuple[int, int]], device: str = "auto") -> tuple[list[str], list[bool]]:
    """(device, whether it is its own) of every rank of a job on hosts with so many GPUs and so many ranks each."""
    ranks = [(gpus, ranks, local) for gpus, ranks in hosts for local in range(ranks)]
    chosen = [choose_device(device, gpus, local) for gpus, _, local in ranks]
    own = [has_own_gpu(where, gpus, ranks) for where, (gpus, ranks, _) in zip(chosen, ranks, strict=True)]
    return chosen, own


GLOO, NCCL = "gloo", "cpu:gloo,cuda:nccl"


@pytest.mark.parametrize(
    ("hosts", "devices_", "backend"),
    [
        ([(0, 3)], ["cpu"] * 3, GLOO),
        ([(1, 1)], ["cuda:0"], NCCL),
        ([(1, 3)], ["cuda:0"] * 3, GLOO),
        ([(2, 2)], ["cuda:0", "cuda:1"], NCCL),
        ([(2, 3)], ["cuda:0", "cuda:1", "cuda:0"], GLOO),
        ([(8, 5)], [f"cuda:{number}" for number in range(5)], NCCL),
        ([(8, 9)], [f"cuda:{number % 8}" for number in range(9)], GLOO),
        ([(8, 8), (2, 2)], [f"cuda:{number}" for number in (*range(8), 0, 1)], NCCL),
        ([(8, 8), (1, 2)], [f"cuda:{number}" for number in (*range(8), 0, 0)], GLOO),
        ([(2, 2), (0, 2)], ["cuda:0", "cuda:1", "cpu", "cpu"], GLOO),
    ],
)
def test_where_the_ranks_of_a_job_compute_and_what_joins_them(
    hosts: list[tuple[int, int]], devices_: list[str], backend: str
) -> None:
    """Hosts as (GPUs, ranks). What is sealed crosses through the CPU, whatever there is."""
    chosen, own = placement(hosts)
    assert chosen == devices_
    assert choose_backend("auto", own) == backend
    assert choose_backend("auto", own, sealed=True) == choose_backend("gloo", own) == GLOO
    assert placement(hosts, "cpu") == (["cpu"] * len(chosen), [False] * len(chosen))


def test_a_host_without_a_gpu_among_hosts_with_one() -> None:
    with pytest.raises(UserError, match=r"cluster\.device=cuda: torch sees no GPU here"):
        placement([(2, 2), (0, 2)], "cuda")
    with pytest.raises(UserError, match=r"cluster\.backend=nccl: rank 2 has no GPU of its own"):
        choose_backend("nccl", placement([(2, 2), (0, 2)])[1])


@pytest.mark.parametrize(
    ("requested", "device", "size", "kept"),
    [
        ("auto", "cpu", 10, False),
        ("device", "cpu", 10, False),
        ("auto", "cuda:0", 50, True),
        ("auto", "cuda:0", 51, False),
        ("host", "cuda:0", 50, False),
        ("device", "cuda:1", 50, True),
        ("auto", "cuda:0", None, False),
        ("host", "cuda:0", None, False),
    ],
)
def test_features_are_kept_on_a_gpu_where_they_take_half_of_what_is_free(
    requested: str, device: str, size: int | None, kept: bool
) -> None:
    assert keeps_features(requested, device, size, free_bytes=100) is kept


def test_features_that_cannot_be_on_the_device() -> None:
    with pytest.raises(UserError, match=r"60\.0 GB are more than half of the 80\.0 GB free on cuda:0"):
        keeps_features("device", "cuda:0", 60 * 10**9, 80 * 10**9)
    with pytest.raises(UserError, match="fetch features from each other; use sampling.features_on=auto"):
        keeps_features("device", "cuda:0", None, 80 * 10**9)


@pytest.mark.parametrize(
    ("device", "scratch", "size", "expected"),
    [
        ("cpu", None, 1, "cpu"),
        ("cuda:1", None, 25, "cuda:1"),
        ("cuda:1", None, 26, "cpu"),
        ("cuda:1", "/tmp/states", 1, "cpu"),
    ],
)
def test_models_are_evaluated_on_the_servers_gpu_where_two_states_fit(
    device: str, scratch: str | None, size: int, expected: str
) -> None:
    assert evaluation_device(device, scratch, size, free_bytes=100) == expected


@pytest.mark.parametrize(("method", "places"), [("psgd_pa", 2), ("llcg", 3)])
def test_the_server_keeps_features_only_where_it_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, places: int
) -> None:
    """Beside two machines. On a GPU they would take memory for nothing, or not fit."""
    placed = []
    for module in (open_run, handshake):
        monkeypatch.setattr(module, "place_features", lambda *arguments: placed.append(arguments))
    on_loopback(tmp_path, "run", *TINY, f"algorithm={method}", "num_rounds=1")
    assert len(placed) == places
