"""Someone without the job's key writes to its store: nothing runs, nobody is blamed, the bits are the same."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.helpers.jobs import Job, finish, llcg, ranks_of, start_llcg, wait_for_rounds
from tests.helpers.netns import PORT, hosts, multinode
from tests.helpers.run_files import model_bytes
from tests.helpers.strangers import as_nobody, stranger
from tests.helpers.training import cut, on_loopback

IGNORED = "value(s) in the job's store were not sealed with this job's key and were ignored"


def port_of_store(job: Job) -> int:
    """The one port on which the launcher listens."""
    [port] = {c.laddr.port for c in psutil.Process(job.pid).net_connections() if c.status == psutil.CONN_LISTEN}
    return port


@pytest.mark.alone
def test_another_user_of_the_host_writes_to_the_store(tmp_path: Path) -> None:
    """Everything is poisoned while the job trains; then a rank is killed, and the job starts again, though refused."""
    settings = ["experiment=tiny", "num_rounds=250", "evaluate.every=0", "cluster.timeout=10", "cluster.max_restarts=1"]
    with stranger(as_nobody) as nobody:
        job = start_llcg("train", *settings, f"partition.root={tmp_path}/parts", f"run_dir={tmp_path}/run")
        wait_for_rounds(tmp_path / "run", 1, job)
        nobody.poison("127.0.0.1", port_of_store(job), 5, job)
        os.kill(ranks_of(job)[2], signal.SIGKILL)
        outcome = finish(job, limit=100)
        assert nobody.executed() == []
    assert (outcome.code, outcome.err) == (0, ""), outcome
    assert IGNORED in outcome.out
    server_log = (tmp_path / "run" / "logs" / "server.log").read_text()
    assert server_log.count("going on after round") == 2
    assert "values in the job's store that are not authentic" in server_log
    undisturbed = on_loopback(tmp_path, "undisturbed", *settings)
    assert model_bytes(tmp_path / "run") == model_bytes(undisturbed)


@pytest.mark.alone
def test_another_host_writes_to_the_store_and_wants_to_join(tmp_path: Path) -> None:
    """It reaches the head's port. With a key of its own it is told so and turned away, and the job goes on."""
    settings = ["experiment=tiny", "num_rounds=250", "evaluate.every=0", f"partition.root={tmp_path}/parts"]
    cut(*settings)
    assert llcg("key", str(tmp_path / "own.key")).code == 0
    with hosts(3) as (head, member, outsider), stranger(outsider.command) as somebody:
        places = [f"run_dir={tmp_path}/run"]
        jobs = [multinode(host, head, 2, here, *settings, *places) for host, here in ((head, 1), (member, 2))]
        wait_for_rounds(tmp_path / "run", 1, *jobs)
        uninvited = multinode(outsider, head, 2, 1, *settings, *places, f"cluster.key_file={tmp_path}/own.key")
        somebody.poison(head.address, PORT, 5, *jobs)
        refused = finish(uninvited)
        outcomes = [finish(job) for job in jobs]
        assert somebody.executed() == []
    assert refused.code == 2
    assert "its store is not sealed with this host's key" in refused.only_error()
    assert [(outcome.code, outcome.err) for outcome in outcomes] == [(0, "")] * 2, outcomes
    assert IGNORED in "".join(outcome.out for outcome in outcomes)
    undisturbed = on_loopback(tmp_path, "undisturbed", *settings)
    assert model_bytes(tmp_path / "run") == model_bytes(undisturbed)
