"""A job's place in a SLURM allocation: how many ranks each node starts, where they meet, and the torchrun of a node.

`launch/slurm.sbatch` calls it twice: `check` once, on the first node, before anything starts; `agent` on every node.
A sweep's jobs on SLURM (`cli/sweep.py`) start their agents with the same command.
"""

import contextlib
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from llcg_dist.cli.console import print_error
from llcg_dist.config import load_config, quoted_override
from llcg_dist.errors import UserError
from llcg_dist.schema import Config

_GRACE = 10
"""Seconds that ranks get to end by themselves before they are killed; SLURM's own KillWait is 30 by default."""


def spread(ranks: int, nodes: int) -> list[int]:
    """Ranks of each node, as even as can be; nodes that would have none are left out."""
    used = min(ranks, nodes)
    return [ranks // used + (node < ranks % used) for node in range(used)]


def agent_command(config: Config, run_dir: Path, ranks: int, overrides: Sequence[str]) -> list[str] | None:
    """This node's torchrun, from what SLURM says of the job; None where no rank of it runs here."""
    environ = os.environ
    nodes = _scontrol("hostnames", environ.get("SLURM_STEP_NODELIST") or environ["SLURM_JOB_NODELIST"]).split()
    layout, me = spread(ranks, len(nodes)), int(environ["SLURM_NODEID"])
    if me >= len(layout):
        return None
    _warn_of_shared_cores(layout[me] * config.cluster.threads, environ)
    job, port = environ["SLURM_JOB_ID"], environ.get("LLCG_RENDEZVOUS_PORT") or _port_of_job(environ["SLURM_JOB_ID"])
    rendezvous = {"is_host": int(me == 0), "join_timeout": int(config.cluster.join_timeout)}
    return [
        *(sys.executable, "-m", "torch.distributed.run"),
        *(f"--nnodes={len(layout)}", f"--nproc-per-node={layout[me]}", f"--max-restarts={config.cluster.max_restarts}"),
        *("--rdzv-backend=c10d", f"--rdzv-endpoint={_address(nodes[0])}:{port}", f"--rdzv-id={job}"),
        f"--rdzv-conf={','.join(f'{key}={value}' for key, value in rendezvous.items())}",
        *(f"--local-addr={_address(nodes[me])}", f"--shutdown-timeout={_GRACE}"),
        *(f"--log-dir={run_dir / 'logs' / 'torchrun' / nodes[me]}", "--tee=3"),
        *("-m", "llcg_dist.train", *overrides, quoted_override("run_dir", str(run_dir))),
    ]


def _scontrol(what: str, name: str) -> str:
    asked = subprocess.run(["scontrol", "show", what, name], capture_output=True, text=True, timeout=60)
    if asked.returncode:
        raise UserError(f"scontrol show {what} {name}: {asked.stderr.strip() or asked.stdout.strip()}")
    return asked.stdout


def _address(node: str) -> str:
    """Where SLURM itself reaches the node; its name, unless the administrator says otherwise."""
    entries = (entry.partition("=") for entry in _scontrol("node", node).split())
    return next((value for key, _, value in entries if key == "NodeAddr"), node)


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


def _check(overrides: Sequence[str]) -> None:
    """Everything that can be found wrong before processes start; prints what the batch script needs to know."""
    from llcg_dist.cli.main import check_job

    with contextlib.redirect_stdout(sys.stderr):
        ranks, run_dir = check_job(_settings(overrides)[0])
    nodes = int(os.environ["SLURM_JOB_NUM_NODES"])
    used = len(spread(ranks, nodes)) if ranks else 0
    values = {"ranks": ranks, "nodes": used, "port": _free_port(), "run_dir": run_dir}
    print("\n".join(f"{name}={shlex.quote(str(value))}" for name, value in values.items()))


def _agent(overrides: Sequence[str]) -> None:
    """Becomes torchrun, so that SLURM's signals reach it without a process between."""
    config, all_overrides = _settings(overrides)
    command = agent_command(config, Path(str(config.run_dir)), int(os.environ["LLCG_RANKS"]), all_overrides)
    if command:
        os.environ["OMP_NUM_THREADS"] = str(config.cluster.threads)
        os.execv(command[0], command)


def main(arguments: Sequence[str]) -> int:
    steps = {"check": _check, "agent": _agent}
    try:
        steps[arguments[0]](arguments[1:])
    except UserError as error:
        print_error(str(error))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
