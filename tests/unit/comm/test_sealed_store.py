"""A sealed store over one that a stranger writes to (torch's HashStore): what it hands out, ignores and counts."""

import contextlib
import threading
import time
from datetime import timedelta

import pytest
import torch.distributed as dist

from llcg_dist.comm.job_store import ignored_values, sealed
from llcg_dist.comm.liveness import Heartbeat, Limits
from llcg_dist.comm.rendezvous import fresh_prefix
from llcg_dist.comm.sealed_store import SealedStore
from llcg_dist.errors import PeerLostError

KEY = bytes(range(32))
SHORT = timedelta(milliseconds=80)


@pytest.fixture
def beneath() -> dist.HashStore:
    """What everybody can reach."""
    store = dist.HashStore()
    store.set_timeout(SHORT)
    return store


def another(beneath: dist.Store, key: bytes = KEY) -> SealedStore:
    """As another process sees it."""
    return SealedStore(beneath, key)


def test_values_cross_between_those_who_have_the_key(beneath: dist.HashStore) -> None:
    writer, reader = another(beneath), another(beneath)
    writer.set("text", "ä")
    writer.set("binary", b"\xff\0")
    assert reader.get("text") == "ä".encode()
    assert reader.get("binary") == b"\xff\0"
    assert reader.multi_get(["text", "binary"]) == ["ä".encode(), b"\xff\0"]
    assert reader.check(["text", "binary"])
    assert not reader.check(["text", "nothing"])
    reader.wait(["text", "binary"])
    reader.wait(["text"], timedelta(seconds=1))
    writer.set("text", "b")
    assert reader.get("text") == b"b"
    assert (writer.ignored, reader.ignored) == (0, 0)


def test_through_torchs_prefixes(beneath: dist.HashStore) -> None:
    """C++ calls the methods of the sealed store: what torch's rendezvous, Gloo and NCCL do."""
    mine, others = another(beneath), another(beneath)
    here, there = dist.PrefixStore("a", dist.PrefixStore("b", mine)), dist.PrefixStore("b/a", others)
    here.set("x", "1")
    assert there.get("x") == b"1"
    assert here.compare_set("x", "1", "2") == b"2"
    assert there.compare_set("x", "1", "3") == b"2"
    here.append("x", "!")  # type: ignore[attr-defined]
    assert there.multi_get(["x"]) == [b"2!"]
    here.multi_set(["y", "z"], ["4", "5"])  # type: ignore[attr-defined]
    there.wait(["y", "z"], SHORT)
    assert not there.has_extended_api()  # type: ignore[attr-defined]
    assert (here.add("n", 2), there.add("n", 1)) == (2, 3)
    assert here.num_keys() == 4
    assert here.delete_key("y")
    assert not there.check(["y"])
    assert here.clone().get("z") == b"5"  # type: ignore[attr-defined]
    there.set_timeout(timedelta(seconds=7))
    assert others.timeout == timedelta(seconds=7)


def test_compare_set_does_what_torchs_stores_do(beneath: dist.HashStore) -> None:
    plain = dist.HashStore()
    for expected, desired in [("x", "y"), ("", "1"), ("", "2"), ("1", "2"), ("1", "3"), ("2", ""), ("", "4")]:
        assert another(beneath).compare_set("k", expected, desired) == plain.compare_set("k", expected, desired)
        assert another(beneath).check(["k"]) == plain.check(["k"])


def test_of_many_who_compare_and_set_one_wins_each_time(beneath: dist.HashStore) -> None:
    counts = [0, 0, 0]

    def count_up(place: int) -> None:
        store = another(beneath)
        while True:
            now = int(store.get("count"))
            if now == 90:
                return
            counts[place] += store.compare_set("count", str(now), f"{now + 1}") == str(now + 1).encode()

    another(beneath).set("count", "0")
    threads = [threading.Thread(target=count_up, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert another(beneath).get("count") == b"90"
    assert sum(counts) >= 90


@pytest.mark.parametrize("forged", [b"", b"1", b"\x80\x05.", b"\0" * 40, b"\xff" * 200])
def test_a_value_that_is_not_sealed_counts_as_none(beneath: dist.HashStore, forged: bytes) -> None:
    store = another(beneath)
    beneath.set("k", forged)  # type: ignore[arg-type]
    assert not store.check(["k"])
    with pytest.raises(dist.DistStoreError, match="no authentic value under k"):
        store.get("k")
    with pytest.raises(dist.DistStoreError, match="no authentic value under k"):
        store.wait(["k"], SHORT)
    assert store.ignored == 1  # one value, however often it is read
    assert store.compare_set("k", "x", "y") == b"x"
    assert store.compare_set("k", "", "mine") == b"mine"
    assert another(beneath).get("k") == b"mine"


def test_whoever_waits_goes_on_waiting_for_the_genuine_value(beneath: dist.HashStore) -> None:
    reader, writer = another(beneath), another(beneath)
    reader.set_timeout(timedelta(seconds=20))
    beneath.set("address", "10.6.6.6")
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(reader.get("address")))
    thread.start()
    time.sleep(0.1)
    assert not found
    writer.set("address", "10.0.0.1")
    thread.join(20)
    assert found == [b"10.0.0.1"]
    assert reader.ignored == 1


def test_what_was_seen_stands_and_is_put_back(beneath: dist.HashStore) -> None:
    reader = another(beneath)
    another(beneath).set("k", "genuine")
    assert reader.get("k") == b"genuine"
    for number, forged in enumerate(["forged", "again", "forged"], 1):
        beneath.set("k", forged)
        assert reader.check(["k"])
        assert reader.get("k") == b"genuine"
        assert another(beneath).get("k") == b"genuine"  # also for those who come later
        assert reader.ignored == number
    assert reader.compare_set("k", "genuine", "next") == b"next"


def test_an_older_value_is_refused(beneath: dist.HashStore) -> None:
    writer, reader = another(beneath), another(beneath)
    writer.set("beat/1", "1")
    recorded = beneath.get("beat/1")
    writer.set("beat/1", "2")
    assert reader.get("beat/1") == b"2"
    beneath.set("beat/1", recorded)  # type: ignore[arg-type]
    assert reader.get("beat/1") == b"2"
    assert reader.ignored == 1
    beneath.set("beat/1", recorded)  # type: ignore[arg-type]
    assert writer.compare_set("beat/1", "1", "3") == b"2"


def test_a_value_moved_to_another_key_is_refused(beneath: dist.HashStore) -> None:
    store = another(beneath)
    store.set("beat/1", "1")
    beneath.set("beat/2", beneath.get("beat/1"))  # type: ignore[arg-type]
    assert not store.check(["beat/2"])
    assert store.ignored == 1


def test_a_process_that_starts_again_is_heard(beneath: dist.HashStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It remembers no counter; its host's clock may be behind, and what it wrote may be gone."""
    reader = another(beneath)
    another(beneath).set("k", "first")
    assert reader.get("k") == b"first"
    monkeypatch.setattr(time, "time_ns", lambda: 5)
    another(beneath).set("k", "second")
    assert reader.get("k") == b"second"
    monkeypatch.undo()
    beneath.set("k", "forged")
    another(beneath).set("k", "third")
    assert reader.get("k") == b"third"


def test_another_key_is_another_world(beneath: dist.HashStore) -> None:
    ours, theirs = another(beneath), another(beneath, bytes(32))
    theirs.set("k", "v")
    assert not ours.check(["k"])
    assert ours.ignored == 1
    assert "1 value(s) in the job's store were not sealed with this job's key" in ignored_values(ours)
    assert ignored_values(theirs) == ""


def test_what_is_ignored_is_in_the_log_and_a_flood_does_not_fill_it(
    beneath: dist.HashStore, caplog: pytest.LogCaptureFixture
) -> None:
    store = another(beneath)
    for number in range(1000):
        beneath.set("k", f"forged {number}")
        assert not store.check(["k"])
    assert store.ignored == 1000
    assert len(caplog.records) == 10
    assert "not authentic: 512 ignored, now 'k'" in caplog.text


def test_without_a_key_the_store_is_as_it_is(beneath: dist.HashStore) -> None:
    assert sealed(beneath, None) is beneath
    assert ignored_values(beneath) == ""
    assert isinstance(sealed(beneath, KEY), SealedStore)


def test_a_stranger_is_not_admitted_as_a_rank(beneath: dist.HashStore) -> None:
    """It says what a rank says, without the key; or with a key of its own."""
    for stranger in (beneath, another(beneath, bytes(32))):
        server = another(beneath)
        alone = threading.Thread(target=_join_quietly, args=(stranger, 1))
        alone.start()
        with pytest.raises(PeerLostError, match="rank 1 did not join within cluster.join_timeout=0.4 s"):
            fresh_prefix(server, 0, 2, limit=0.4)
        assert server.ignored > 0
        alone.join(20)


def _join_quietly(store: dist.Store, rank: int) -> None:
    with contextlib.suppress(PeerLostError, ValueError):  # what it reads is none of its own
        fresh_prefix(store, rank, 2, limit=0.4)


def test_a_forged_beat_is_no_sign_of_life_and_the_next_true_one_is_heard(beneath: dist.HashStore) -> None:
    """Beat by beat, without threads: which of two writers a reader meets would be a matter of luck."""
    server, machine = another(beneath), another(beneath)
    beats = Heartbeat(machine, 1, {0: "the server"}, Limits(60.0), pytest.fail)
    watch = Heartbeat(server, 0, {1: "rank 1"}, Limits(60.0), pytest.fail)
    beats.beat()
    watch.beat()
    heard = time.monotonic()
    for number in range(20):
        beneath.set("beat/1", f"{number}" if number % 2 else "1")
        watch.beat()
    assert server.ignored == 20
    assert watch.silent(heard) is None
    assert watch.silent(heard + 60) == "nothing heard from rank 1 for 60 s (cluster.timeout=60)"
    while time.monotonic() == heard:
        time.sleep(0.001)
    beats.beat()
    watch.beat()
    assert watch.silent(heard + 60) is None
