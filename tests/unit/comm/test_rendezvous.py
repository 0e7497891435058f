"""Ranks find each other, and decide together who serves, from what each has."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from llcg_dist.comm.rendezvous import choose_backend, fresh_prefix, negotiate, pick_server, swapped_rank
from llcg_dist.errors import PeerLostError, UserError


class Memory:
    """A store in one process."""

    def __init__(self) -> None:
        self.content: dict[str, str] = {}

    def set(self, key: str, value: str) -> None:
        self.content[key] = value

    def get(self, key: str) -> bytes:
        return self.content[key].encode()

    def check(self, keys: list[str]) -> bool:
        return all(key in self.content for key in keys)


def at_once(size: int, work: Callable[[int], Any]) -> list[Any]:
    """What each rank's call returned or raised."""
    results: list[Any] = [None] * size

    def one(rank: int) -> None:
        try:
            results[rank] = work(rank)
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


def test_traces_of_an_earlier_start_do_not_count() -> None:
    store = Memory()
    first = at_once(3, lambda rank: fresh_prefix(store, rank, 3, 20))
    second = at_once(3, lambda rank: fresh_prefix(store, rank, 3, 20))
    assert len(set(first)) == len(set(second)) == 1
    assert first[0] != second[0]


def test_missing_ranks_are_named() -> None:
    store = Memory()
    results = at_once(3, lambda index: fresh_prefix(store, (0, 2, 4)[index], 5, 1))
    assert str(results[0]) == "rank 1, rank 3 did not join within cluster.join_timeout=1 s"
    assert isinstance(results[0], PeerLostError)


def test_everyone_hears_what_rank_0_decides_from_what_all_say() -> None:
    store = Memory()

    def decide(everyone: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {"sum": sum(said["number"] for said in everyone)}

    assert at_once(3, lambda rank: negotiate(store, rank, 3, {"number": 10 + rank}, decide, 20)) == [{"sum": 33}] * 3


def test_a_mistake_at_one_rank_reaches_all() -> None:
    store = Memory()
    says = [{}, {"error": "cluster.interface=eth7: is no interface"}, {}]
    results = at_once(3, lambda rank: negotiate(store, rank, 3, says[rank], lambda everyone: {}, 20))
    assert [type(result) for result in results] == [UserError] * 3
    assert {str(result) for result in results} == {"rank 1: cluster.interface=eth7: is no interface"}


def test_a_decision_that_cannot_be_made_reaches_all() -> None:
    store = Memory()

    def refuse(everyone: Sequence[dict[str, Any]]) -> dict[str, Any]:
        raise UserError("cluster.backend=nccl: no")

    results = at_once(2, lambda rank: negotiate(store, rank, 2, {}, refuse, 20))
    assert [str(result) for result in results] == ["cluster.backend=nccl: no"] * 2


@pytest.mark.parametrize(
    ("graph", "run", "server"),
    [
        ("...", "...", 0),
        ("x..", "...", 0),
        ("..x", "...", 2),
        ("xxx", "...", 0),
        ("xxx", ".x.", 1),  # on its disk the run began
        (".x.", "x..", 1),  # records without a graph are of no use
        ("xxx", "xxx", 0),
    ],
)
def test_the_server_is_where_the_graph_is(graph: str, run: str, server: int) -> None:
    everyone = [{"graph": g == "x", "run": r == "x"} for g, r in zip(graph, run, strict=True)]
    assert pick_server(everyone) == server


def test_ranks_exchanged() -> None:
    assert [swapped_rank(rank, 2) for rank in range(4)] == [2, 1, 0, 3]
    assert [swapped_rank(rank, 0) for rank in range(3)] == [0, 1, 2]


NCCL = "cpu:gloo,cuda:nccl"


@pytest.mark.parametrize(
    ("requested", "own_gpu", "backend"),
    [
        ("auto", [True, True, True], NCCL),
        ("auto", [True, True, False], "gloo"),
        ("auto", [False, False], "gloo"),
        ("gloo", [True, True], "gloo"),
        ("nccl", [True, True], NCCL),
    ],
)
def test_nccl_where_every_rank_has_a_gpu_of_its_own(requested: str, own_gpu: list[bool], backend: str) -> None:
    assert choose_backend(requested, own_gpu) == backend


def test_what_is_sealed_crosses_through_the_cpu() -> None:
    assert choose_backend("auto", [True, True], sealed=True) == "gloo"
    with pytest.raises(UserError, match=r"cluster\.backend=nccl: what NCCL sends cannot be sealed; use"):
        choose_backend("nccl", [True, True], sealed=True)


def test_nccl_without_gpus_names_the_first_rank_that_lacks_one() -> None:
    with pytest.raises(UserError, match=r"cluster\.backend=nccl: rank 1 has no GPU"):
        choose_backend("nccl", [True, False, False])
