"""A job's place in a SLURM allocation: how many ranks each node starts, where they meet, and the agent of a node.

`launch/slurm.sbatch` calls it twice: `check` once, on the first node, before anything starts; `agent` on every node.
A sweep's jobs on SLURM (`cli/sweep/sweep.py`) start their agents with the same command.
"""

import contextlib
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from llcg_dist.comm.network import route_to
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.errors import UserError
from llcg_dist.records.console import print_error


def spread(ranks: int, nodes: int) -> list[int]:
    """Ranks of each node, as even as can be; nodes that would have none are left out."""
    used = min(ranks, nodes)
    return [ranks // used + (node < ranks % used) for node in range(used)]


def run_agent(config: Config, run_dir: Path, ranks: int, overrides: Sequence[str]) -> int:
    """This node's share of the job, from what SLURM says of it; its exit code, 0 where no rank of it runs here."""
    from llcg_dist.cli.launch.elastic import launch
    from llcg_dist.cli.launch.hosts import Hosts

    environ = os.environ
    nodes = _scontrol("hostnames", environ.get("SLURM_STEP_NODELIST") or environ["SLURM_JOB_NODELIST"]).split()
    layout, me = spread(ranks, len(nodes)), int(environ["SLURM_NODEID"])
    if me >= len(layout):
        return 0
    _warn_of_shared_cores(layout[me] * config.cluster.threads, environ)
    hosts = None
    if len(layout) > 1:
        job = environ["SLURM_JOB_ID"]
        port = int(environ.get("LLCG_RENDEZVOUS_PORT") or _port_of_job(job))
        head = _own_address(_address(nodes[1])) if me == 0 else _address(nodes[0])
        hosts = Hosts(len(layout), head, port, job, config.cluster.join_timeout, 1, is_head=me == 0, name=nodes[me])
    return launch(layout[me], config.cluster, run_dir, overrides, hosts)


def _scontrol(what: str, name: str) -> str:
    asked = subprocess.run(["scontrol", "show", what, name], capture_output=True, text=True, timeout=60)
    if asked.returncode:
        raise UserError(f"scontrol show {what} {name}: {asked.stderr.strip() or asked.stdout.strip()}")
    return asked.stdout


def _address(node: str) -> str:
    """Where SLURM itself reaches the node; its name, unless the administrator says otherwise."""
    entries = (entry.partition("=") for entry in _scontrol("node", node).split())
    return next((value for key, _, value in entries if key == "NodeAddr"), node)


def _own_address(of_another: str) -> str:
    """Where another node finds this one. Not this node's name: to itself that may mean a loopback address."""
    address = route_to(of_another)
    if address is None:
        raise UserError(f"this node has no way to {of_another}, another node of the job")
    return address


def _port_of_job(job: str) -> int:
    """The same at every node without a word between them; jobs on the same node have other ids."""
    return 15_000 + int(job) % 15_000


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _warn_of_shared_cores(wanted: int, environ: Mapping[str, str]) -> None:
    cores = int(environ.get("SLURM_CPUS_ON_NODE", wanted))
    if cores < wanted:
        node = environ.get("SLURMD_NODENAME", "this node")
        print(f"warning: {node} runs {wanted} threads on {cores} cores; ask for more with --cpus-per-task", flush=True)


def _settings(overrides: Sequence[str]) -> tuple[Config, list[str]]:
    """Without a run_dir the job's id names it: SLURM keeps the id when it requeues the job, which so finds its run."""
    all_overrides = [f"run_dir=runs/slurm-{os.environ['SLURM_JOB_ID']}", *overrides]
    config = load_config(all_overrides)
    if not config.run_dir:
        raise UserError("run_dir: must be a folder on SLURM, so that a requeued job finds its checkpoints")
    return config, all_overrides


def _check(overrides: Sequence[str]) -> int:
    """Everything that can be found wrong before processes start; prints what the batch script needs to know."""
    from llcg_dist.cli.main import check_job

    with contextlib.redirect_stdout(sys.stderr):
        ranks, run_dir = check_job(_settings(overrides)[0])
    nodes = int(os.environ["SLURM_JOB_NUM_NODES"])
    used = len(spread(ranks, nodes)) if ranks else 0
    values = {"ranks": ranks, "nodes": used, "port": _free_port(), "run_dir": run_dir}
    print("\n".join(f"{name}={shlex.quote(str(value))}" for name, value in values.items()))
    return 0


def _agent(overrides: Sequence[str]) -> int:
    """The elastic agent is this very process, so that SLURM's signals reach it without one between."""
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # before torch is loaded, as in cli/launch/multinode.py
    config, all_overrides = _settings(overrides)
    others = [override for override in all_overrides if not override.startswith("run_dir=")]
    return run_agent(config, Path(str(config.run_dir)), int(os.environ["LLCG_RANKS"]), others)


def main(arguments: Sequence[str]) -> int:
    steps = {"check": _check, "agent": _agent}
    try:
        return steps[arguments[0]](arguments[1:])
    except UserError as error:
        print_error(str(error))
        return 2
    except KeyboardInterrupt:
        print_error("stopped by SIGINT")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
