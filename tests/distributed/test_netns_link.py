"""A cut link: both sides end and say whom they miss; plugged in again, the job ends with the same bits."""

import time
from pathlib import Path

import pytest

from tests.helpers.jobs import finish, is_alive, ranks_of, wait_for_rounds
from tests.helpers.netns import hosts, torchrun_on
from tests.helpers.run_files import model_bytes
from tests.helpers.training import on_loopback

TIMEOUT = 5
JOB = ["experiment=tiny", "num_rounds=200", f"cluster.timeout={TIMEOUT}", "cluster.join_timeout=60"]


@pytest.mark.alone
@pytest.mark.full
def test_a_cut_link_costs_time_only(tmp_path: Path) -> None:
    undisturbed = on_loopback(tmp_path, "undisturbed", *JOB)
    settings = [*JOB, f"partition.root={tmp_path}/parts", f"run_dir={tmp_path}/run"]
    with hosts(2) as (head, other):
        jobs = [torchrun_on(host, head, 2, here, *settings, max_restarts=3) for host, here in ((head, 2), (other, 1))]
        wait_for_rounds(tmp_path / "run", 10, *jobs)
        ranks = ranks_of(*jobs)
        assert sorted(ranks) == [0, 1, 2]
        other.unplug()
        cut = time.monotonic()
        while any(is_alive(pid) for pid in ranks.values()) and time.monotonic() < cut + 60:
            time.sleep(0.1)
        gone = time.monotonic() - cut
        other.plug()
        outcomes = [finish(job) for job in jobs]
    assert gone < TIMEOUT + 15
    assert [outcome.code for outcome in outcomes] == [0, 0], outcomes
    # Which host becomes rank 0's is the rendezvous's choice; the two sides are the same either way.
    said = outcomes[0].err + outcomes[1].err
    assert "nothing heard from rank" in said
    assert "no answer from the job's store on rank 0's host" in said
    assert model_bytes(tmp_path / "run") == model_bytes(undisturbed)
