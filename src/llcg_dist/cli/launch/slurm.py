"""Starts a job in a SLURM allocation: the number of ranks on each node, their rendezvous, the elastic agent of a node.

cli/launch/batch_job.sh runs this module with `check` once, on the first node, before anything starts, and with `agent`
on every node. A sweep's jobs on SLURM (cli/sweep/job.py) start their agents with the same command.
"""

import contextlib
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from llcg_dist.cli.exit_codes import exit_code_of
from llcg_dist.cli.launch.torch_logging import silence_torch_store
from llcg_dist.comm.job_key import replace_key
from llcg_dist.comm.network import route_to
from llcg_dist.config.compose import load_config
from llcg_dist.config.own_files import find_own_files
from llcg_dist.config.schema import Config
from llcg_dist.data.atomic_files import make_folder
from llcg_dist.errors import UserError

_FIRST_PORT, _NUM_PORTS = 15_000, 15_000
"""The range of rendezvous ports that are derived from a job's id."""
_SCONTROL_TIMEOUT_SECONDS = 60
_KEY_FILE = "job.key"
"""Name of the file in run_dir that holds the key of the job's nodes."""


def ranks_per_node(ranks: int, nodes: int) -> list[int]:
    """The number of ranks on each node, as even as possible; nodes that would have none are left out."""
    used = min(ranks, nodes)
    return [ranks // used + (node < ranks % used) for node in range(used)]


def make_job_key(run_dir: Path) -> None:
    """Makes the key that the nodes of a job will share, in its run_dir; before any of its agents starts."""
    make_folder(run_dir, "run_dir")
    replace_key(run_dir / _KEY_FILE)


def run_agent(config: Config, run_dir: Path, ranks: int, overrides: Sequence[str]) -> int:
    """Runs this node's ranks, as SLURM's environment variables describe the job; returns the exit code.

    `ranks`: number of ranks of the job. 0 is returned at once where none of them runs on this node.
    """
    from llcg_dist.cli.launch.elastic import launch
    from llcg_dist.cli.launch.hosts import Hosts

    environ = os.environ
    nodes = _scontrol("hostnames", environ.get("SLURM_STEP_NODELIST") or environ["SLURM_JOB_NODELIST"]).split()
    layout, node = ranks_per_node(ranks, len(nodes)), int(environ["SLURM_NODEID"])
    if node >= len(layout):
        return 0
    _warn_of_shared_cores(layout[node] * config.cluster.threads, environ)
    hosts = None
    if len(layout) > 1:
        job = environ["SLURM_JOB_ID"]
        port = int(environ.get("LLCG_RENDEZVOUS_PORT") or _port_of_job(job))
        head = _own_address(_address(nodes[1])) if node == 0 else _address(nodes[0])
        hosts = Hosts(len(layout), head, port, job, config.cluster.join_timeout, 1, is_head=node == 0, name=nodes[node])
    cluster = config.cluster
    if hosts and cluster.sealed and not cluster.key_file:
        cluster = replace(cluster, key_file=str(run_dir / _KEY_FILE))
    return launch(layout[node], cluster, run_dir, overrides, hosts)


def run_slurm(command: list[str], seconds: float, script: str | None = None) -> subprocess.CompletedProcess[str]:
    """One of SLURM's commands, with what it printed; UserError where its controller does not answer in time."""
    try:
        return subprocess.run(command, input=script, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise UserError(f"{' '.join(command)}: no answer from SLURM within {seconds:g} s; try again later") from None


def _scontrol(entity: str, name: str) -> str:
    """The output of `scontrol show ENTITY NAME`."""
    command = ["scontrol", "show", entity, name]
    shown = run_slurm(command, _SCONTROL_TIMEOUT_SECONDS)
    if shown.returncode:
        raise UserError(f"{' '.join(command)}: {shown.stderr.strip() or shown.stdout.strip()}")
    return shown.stdout


def _address(node: str) -> str:
    """The address at which SLURM reaches a node: its name, unless the administrator configured a NodeAddr."""
    entries = (entry.partition("=") for entry in _scontrol("node", node).split())
    return next((value for key, _, value in entries if key == "NodeAddr"), node)


def _own_address(other_node: str) -> str:
    """This node's address on its route to another node. Its name would not do: here it may mean a loopback address."""
    address = route_to(other_node)
    if address is None:
        raise UserError(f"this node has no way to {other_node}, another node of the job")
    return address


def _port_of_job(job: str) -> int:
    """The rendezvous port, which every node derives from the job's id; jobs that share a node have different ids."""
    return _FIRST_PORT + int(job) % _NUM_PORTS


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
    """The config and the overrides with a run_dir, which the job's id names unless it is among the overrides.

    SLURM keeps the id when it requeues a job, so that the job resumes in the same run_dir.
    """
    all_overrides = [f"run_dir=runs/slurm-{os.environ['SLURM_JOB_ID']}", *overrides]
    config = load_config(all_overrides)
    if not config.run_dir:
        raise UserError("run_dir: must be a folder on SLURM, so that a requeued job finds its checkpoints")
    return config, all_overrides


def _check(overrides: Sequence[str]) -> int:
    """Checks the job and builds its parts; prints the variables that the batch script evaluates."""
    from llcg_dist.cli.train import prepare_job

    with contextlib.redirect_stdout(sys.stderr):
        ranks, run_dir = prepare_job(_settings(overrides)[0])
    nodes = int(os.environ["SLURM_JOB_NUM_NODES"])
    used = len(ranks_per_node(ranks, nodes)) if ranks else 0
    if used > 1:
        make_job_key(run_dir)
    values = {"ranks": ranks, "nodes": used, "port": _free_port(), "run_dir": run_dir}
    print("\n".join(f"{name}={shlex.quote(str(value))}" for name, value in values.items()))
    return 0


def _agent(overrides: Sequence[str]) -> int:
    """Runs the elastic agent of this node in this process, so that SLURM's signals reach it directly."""
    silence_torch_store()
    config, all_overrides = _settings(overrides)
    return run_agent(config, Path(str(config.run_dir)), int(os.environ["LLCG_RANKS"]), all_overrides)


def require_slurm_job() -> None:
    """Raises a UserError outside of a SLURM job."""
    if not {"SLURM_JOB_ID", "SLURM_JOB_NODELIST"} <= set(os.environ):
        raise UserError("this is not a SLURM job: submit one with llcg slurm --submit; on this host alone, llcg train")


def main(arguments: Sequence[str]) -> int:
    """Runs the subcommand `check` or `agent`, as batch_job.sh does; returns the exit code."""
    return exit_code_of(lambda: _run(find_own_files(arguments)))


def _run(arguments: Sequence[str]) -> int:
    require_slurm_job()
    subcommand = {"check": _check, "agent": _agent}.get(arguments[0] if arguments else "")
    if subcommand is None:
        raise UserError("llcg_dist.cli.launch.slurm: batch scripts call it, with check or agent (llcg slurm --help)")
    return subcommand(arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
