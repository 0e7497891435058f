"""A server and four machines, each on a host of its own: ledger, sockets and network interfaces tell the same story."""

from pathlib import Path

import pytest

from tests.helpers.jobs import finish
from tests.helpers.netns import hosts, torchrun_on
from tests.helpers.run_files import model_sizes, wire
from tests.helpers.training import cut

P, ROUNDS = 4, 5
JOB = ["experiment=tiny", f"cluster.num_machines={P}", f"num_rounds={ROUNDS}", "model.layers=3", "model.hidden=384"]


@pytest.mark.full
def test_sockets_and_interfaces_carry_what_the_ledger_says(tmp_path: Path) -> None:
    settings = [*JOB, f"partition.root={tmp_path}/parts", f"run_dir={tmp_path}/run", "cluster.audit=true"]
    cut(*settings)
    with hosts(1 + P) as found:
        before = [host.sent_bytes() for host in found]
        jobs = [torchrun_on(host, found[0], len(found), 1, *settings) for host in found]
        outcomes = [finish(job) for job in jobs]
        over_interfaces = sum(host.sent_bytes() for host in found) - sum(before)
    assert [outcome.code for outcome in outcomes] == [0] * 5, outcomes
    everything, (model, _) = wire(tmp_path / "run"), model_sizes(tmp_path / "run")
    audit, ledger = everything["audit"], everything["audit"]["ledger_bytes"]
    assert model >= 1_000_000
    assert everything["bytes_by_kind"]["parameters"] == ROUNDS * P * 2 * model
    assert 0 < everything["total_bytes"] - ledger < P * 4096  # what each rank then tells of its sockets
    assert {message["kind"] for message in everything["messages"]} == {"parameters", "control"}
    assert audit["passed"]
    assert audit["socket_bytes_sent"] == audit["socket_bytes_received"]
    assert ledger <= audit["socket_bytes_sent"] <= 1.01 * ledger
    # Headers, acknowledgements, torchrun's rendezvous and the heartbeats come on top.
    assert audit["socket_bytes_sent"] < over_interfaces <= 1.08 * ledger
    said = "".join(outcome.out for outcome in outcomes)
    assert f"wire audit passed: the sockets sent {audit['socket_bytes_sent']:,}" in said
