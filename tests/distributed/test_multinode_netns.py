"""launch/multinode.sh on several hosts, each a network namespace with a disk of its own."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.jobs import Job, Outcome, finish, members, wait_for_rounds
from tests.helpers.netns import PORT, Host, hosts, multinode
from tests.helpers.run_files import model_bytes
from tests.helpers.sockets import listening
from tests.helpers.training import cut, train_in_process


@pytest.fixture(scope="module")
def three() -> Iterator[list[Host]]:
    with hosts(3) as made:
        yield made


def store_of(root: Path, *settings: str) -> Path:
    return cut(*settings, f"partition.root={root}")


def place(store: Path, disk: Path, *names: str) -> str:
    """Copies these folders and files of a store to a host's disk; returns the setting that finds them there."""
    target = disk / "parts" / store.name
    target.mkdir(parents=True)
    for name in names:
        (shutil.copytree if (store / name).is_dir() else shutil.copy)(store / name, target / name)
    return f"partition.root={disk}/parts"


def on_disk(disk: Path, roots: str) -> list[str]:
    return [roots, f"run_dir={disk}/run"]


def test_three_hosts_train_to_the_bits_of_one(three: list[Host], tmp_path: Path) -> None:
    """The head comes 20 s after the others; the graph is on the last host, where two ranks run."""
    job = ["experiment=tiny", "cluster.num_machines=3", "num_rounds=150", "cluster.join_timeout=120"]
    store = store_of(tmp_path, *job)
    train_in_process(*job, f"partition.root={tmp_path}", f"run_dir={tmp_path}/one_process")
    disks = [tmp_path / host.name for host in three]
    held = [("part2",), ("part0",), ("manifest.json", "global", "part1")]
    settings = [on_disk(disk, place(store, disk, *names)) for disk, names in zip(disks, held, strict=True)]
    jobs = {i: multinode(three[i], three[0], 3, here, *job, *settings[i]) for i, here in ((1, 1), (2, 2))}
    time.sleep(20)
    assert all(process.poll() is None for process in jobs.values())
    jobs[0] = multinode(three[0], three[0], 3, 1, *job, *settings[0])
    addresses = listening_when_training(jobs, disks[2] / "run")
    outcomes = [finish(jobs[i]) for i in range(3)]
    assert [(outcome.code, outcome.err) for outcome in outcomes] == [(0, "")] * 3, outcomes
    assert model_bytes(disks[2] / "run") == model_bytes(tmp_path / "one_process")
    assert not any((disk / "run" / "model.pt").exists() for disk in disks[:2])
    for i, host in enumerate(three):
        assert addresses[i] == {host.address}  # the head's rendezvous, and the ranks: nothing on other interfaces


def listening_when_training(jobs: dict[int, Job], run_dir: Path) -> dict[int, set[str]]:
    """The addresses on which each host's processes listen, once the first round is done."""
    wait_for_rounds(run_dir, 1, *jobs.values())
    return {i: set().union(*listening([job.pid, *members(job)]).values()) for i, job in jobs.items()}


def outcomes_of_two(
    three: list[Host], tmp_path: Path, both: list[str], *, first: list[str], second: list[str]
) -> list[Outcome]:
    """A server and a machine, on a host each; the server's host is the head."""
    jobs = [
        multinode(three[0], three[0], 2, 1, *both, f"run_dir={tmp_path}/a/run", *first),
        multinode(three[1], three[0], 2, 1, *both, f"run_dir={tmp_path}/b/run", *second),
    ]
    return [finish(job, limit=100) for job in jobs]


def assert_each_says(outcomes: list[Outcome], text: str, code: int = 2) -> None:
    for outcome in outcomes:
        assert outcome.code == code, outcome
        assert text in outcome.only_error()


TWO = ["experiment=tiny", "cluster.num_machines=1", "cluster.join_timeout=30"]


@pytest.mark.full
def test_hosts_with_other_settings_are_told_which(three: list[Host], tmp_path: Path) -> None:
    store = store_of(tmp_path, *TWO)
    first = [place(store, tmp_path / "a", "manifest.json", "global"), "seed=7"]
    second = [place(store, tmp_path / "b", "part0"), "seed=8"]
    assert_each_says(
        outcomes_of_two(three, tmp_path, TWO, first=first, second=second),
        "rank 1 has seed 8 (rank 0: 7): start all ranks alike",
    )


@pytest.mark.full
def test_a_host_that_cannot_reach_the_head(three: list[Host], tmp_path: Path) -> None:
    three[1].unplug()
    try:
        both = [*TWO, "cluster.join_timeout=5"]
        head, other = outcomes_of_two(three, tmp_path, both, first=[], second=[])
    finally:
        three[1].plug()
    assert_each_says([head], f"the 2 hosts did not all come to {three[0].address}:{PORT} within")
    assert_each_says([other], f"no answer from the head at {three[0].address}:{PORT} within cluster.join_timeout=5 s")


@pytest.mark.full
def test_too_few_processes_for_p(three: list[Host], tmp_path: Path) -> None:
    both = [*TWO, "cluster.num_machines=2"]
    found = outcomes_of_two(three, tmp_path, both, first=[f"partition.root={tmp_path}"], second=[])
    assert_each_says(found, "cluster.num_machines: the job is a server and 2 machines, but 2 process(es) were started")


@pytest.mark.full
def test_a_part_of_another_graph(three: list[Host], tmp_path: Path) -> None:
    store = store_of(tmp_path / "right", *TWO)
    other = store_of(tmp_path / "wrong", *TWO, "dataset.seed=1")
    second = [place(other, tmp_path / "b", "part0")]
    (tmp_path / "b" / "parts" / other.name).rename(tmp_path / "b" / "parts" / store.name)
    first = [place(store, tmp_path / "a", "manifest.json", "global")]
    assert_each_says(
        outcomes_of_two(three, tmp_path, TWO, first=first, second=second), "rank 1: its part 0 has checksum"
    )


@pytest.mark.full
def test_a_damaged_manifest(three: list[Host], tmp_path: Path) -> None:
    store = store_of(tmp_path, *TWO)
    first = [place(store, tmp_path / "a", "manifest.json", "global")]
    manifest = tmp_path / "a" / "parts" / store.name / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:-20])
    second = [place(store, tmp_path / "b", "part0")]
    assert_each_says(outcomes_of_two(three, tmp_path, TWO, first=first, second=second), "manifest.json: not valid JSON")


@pytest.mark.full
def test_an_interface_that_one_host_does_not_have(three: list[Host], tmp_path: Path) -> None:
    first = [f"cluster.interface={three[0].interface}"]
    second = ["cluster.interface=eth77"]
    found = outcomes_of_two(three, tmp_path, TWO, first=first, second=second)
    assert_each_says(found, "rank 1: cluster.interface=eth77: is no interface of this host")


@pytest.mark.alone
@pytest.mark.full
def test_a_head_that_is_started_again_is_joined_again(three: list[Host], tmp_path: Path) -> None:
    """The head's processes die at once, as when its host goes down; the other host's script is not touched."""
    job = [*TWO, "num_rounds=400", "cluster.timeout=5", "cluster.max_restarts=3", "cluster.join_timeout=100"]
    store = store_of(tmp_path, *job)
    train_in_process(*job, f"partition.root={tmp_path}", f"run_dir={tmp_path}/one_process")
    disks = [tmp_path / "a", tmp_path / "b"]
    held = [("part0",), ("manifest.json", "global")]
    settings = [[*job, *on_disk(disks[i], place(store, disks[i], *held[i]))] for i in range(2)]
    head, other = [multinode(three[i], three[0], 2, 1, *settings[i]) for i in range(2)]
    wait_for_rounds(disks[1] / "run", 1, head, other)
    head.kill()
    head.wait(10)
    again = multinode(three[0], three[0], 2, 1, *settings[0])
    outcomes = [finish(again), finish(other)]
    assert [outcome.code for outcome in outcomes] == [0, 0], outcomes
    assert outcomes[1].err == "llcg: error: this host lost the job's head; joining again\n"
    assert model_bytes(disks[1] / "run") == model_bytes(tmp_path / "one_process")
    assert "going on after round 0" in (disks[1] / "run" / "logs" / "server.log").read_text().splitlines()[0]
