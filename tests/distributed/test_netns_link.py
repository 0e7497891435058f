"""A cut link: both sides end and say whom they miss; plugged in again, the job ends with the same bits."""

import time
from pathlib import Path

import torch

from llcg_dist import train
from llcg_dist.config.compose import load_config
from tests.helpers.jobs import BIN, finish, is_alive, members, rank_of, start
from tests.helpers.netns import Host, hosts

TIMEOUT = 5
JOB = ["experiment=tiny", "num_rounds=200", f"cluster.timeout={TIMEOUT}", "cluster.join_timeout=60"]


def torchrun(host: Host, head: Host, processes: int, *overrides: str) -> list[str]:
    rendezvous = ["--rdzv-backend=c10d", f"--rdzv-endpoint={head.address}:29500", "--rdzv-id=link"]
    rendezvous += ["--rdzv-conf", f"is_host={int(host is head)}", f"--local-addr={host.address}"]
    layout = ["--nnodes=2", f"--nproc-per-node={processes}", "--max-restarts=3"]
    return host.command(str(BIN / "torchrun"), *layout, *rendezvous, "-m", "llcg_dist.train", *JOB, *overrides)


def test_a_cut_link_costs_time_only(tmp_path: Path) -> None:
    settings = [f"partition.root={tmp_path}/parts"]
    torch.set_num_threads(1)
    train.run(
        load_config([*JOB, *settings, "cluster.backend=loopback", f"run_dir={tmp_path}/undisturbed"]), train.Rank()
    )
    with hosts(2) as (head, other):
        jobs = [
            start(torchrun(host, head, processes, *settings, f"run_dir={tmp_path}/run"))
            for host, processes in ((head, 2), (other, 1))
        ]
        metrics = tmp_path / "run" / "metrics.jsonl"
        end = time.monotonic() + 90
        while not (metrics.exists() and metrics.read_bytes().count(b"\n") >= 10):
            assert time.monotonic() < end, "the job did not start"
            time.sleep(0.05)
        ranks = [pid for job in jobs for pid in members(job) if rank_of(pid) is not None]
        assert len(ranks) == 3
        other.unplug()
        cut = time.monotonic()
        while any(is_alive(pid) for pid in ranks) and time.monotonic() < cut + 60:
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
    assert (tmp_path / "run" / "model.pt").read_bytes() == (tmp_path / "undisturbed" / "model.pt").read_bytes()
