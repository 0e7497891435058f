"""A server and four machines, each on a host of its own: ledger, sockets and network interfaces tell the same story."""

import json
from pathlib import Path

from llcg_dist.config.compose import load_config
from llcg_dist.data.partition import ensure_store
from tests.helpers.jobs import BIN, finish, rows, start
from tests.helpers.netns import Host, hosts

JOB = ["experiment=tiny", "cluster.num_machines=4", "num_rounds=5", "model.layers=3", "model.hidden=384"]


def torchrun(host: Host, head: Host, *overrides: str) -> list[str]:
    rendezvous = ["--rdzv-backend=c10d", f"--rdzv-endpoint={head.address}:29500", "--rdzv-id=audit"]
    rendezvous += ["--rdzv-conf", f"is_host={int(host is head)}", f"--local-addr={host.address}"]
    layout = ["--nnodes=5", "--nproc-per-node=1"]
    return host.command(str(BIN / "torchrun"), *layout, *rendezvous, "-m", "llcg_dist.train", *JOB, *overrides)


def test_sockets_and_interfaces_carry_what_the_ledger_says(tmp_path: Path) -> None:
    settings = [f"partition.root={tmp_path}/parts", f"run_dir={tmp_path}/run", "cluster.audit=true"]
    ensure_store(load_config([*JOB, *settings]))
    with hosts(5) as found:
        before = [host.sent_bytes() for host in found]
        jobs = [start(torchrun(host, found[0], *settings)) for host in found]
        outcomes = [finish(job) for job in jobs]
        over_interfaces = sum(host.sent_bytes() for host in found) - sum(before)
    assert [outcome.code for outcome in outcomes] == [0] * 5, outcomes
    wire = json.loads((tmp_path / "run" / "wire.json").read_text())
    audit, ledger = wire["audit"], wire["audit"]["ledger_bytes"]
    model_bytes = rows(tmp_path / "run")[0]["bytes_up"] / 4
    assert model_bytes >= 1_000_000
    assert ledger >= 5 * 4 * 2 * model_bytes
    assert {message["kind"] for message in wire["messages"]} == {"parameters", "control"}
    assert audit["passed"]
    assert audit["socket_bytes_sent"] == audit["socket_bytes_received"]
    assert ledger <= audit["socket_bytes_sent"] <= 1.01 * ledger
    # Headers, acknowledgements, torchrun's rendezvous and the heartbeats come on top.
    assert audit["socket_bytes_sent"] < over_interfaces <= 1.08 * ledger
    said = "".join(outcome.out for outcome in outcomes)
    assert f"wire audit passed: the sockets sent {audit['socket_bytes_sent']:,}" in said
