"""What a job asks SLURM for: nodes, cores and memory, computed from its settings, and the reasons in words."""

import math
from dataclasses import dataclass

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.cli.launch.slurm import ranks_per_node
from llcg_dist.config.schema import Config
from llcg_dist.data.partition import store_path
from llcg_dist.data.store import read_manifest
from llcg_dist.doctor import num_processes, predicted_memory
from llcg_dist.doctor.memory_rules import MARGIN, bytes_of_host

_DEFAULT_NODES = 2
_GOING_ON = """\
Going on: a requeued job keeps its id, finds its run_dir (runs/slurm-JOBID unless it is set) and goes on from its last
checkpoint. Two minutes before the time limit it stops and requeues itself; its log is appended to."""


@dataclass(frozen=True)
class Resources:
    """The ranks of every node, their threads, and the bytes of the fullest node; None where no part is on disk yet."""

    layout: list[int]
    threads: int
    memory: int | None

    def explanation(self) -> list[str]:
        """What the job is made of, and what else may be asked for."""
        ranks, nodes = sum(self.layout), len(self.layout)
        members = "the server alone" if ranks == 1 else f"a server and {ranks - 1} machine(s)"
        spread = " and ".join(map(str, self.layout)) if nodes < 9 else f"{self.layout[0]} or {self.layout[-1]} each"
        lines = [
            f"{ranks} rank(s), {members}, on {nodes} node(s): {spread}. To SLURM a node is one task, an elastic",
            "agent that starts the node's ranks; the first node hosts their rendezvous.",
            "GPUs: --gres=gpu:N, one for each of a node's ranks.",
            "Time: --time=HH:MM:SS; a job that needs longer goes on by itself (see below).",
        ]
        if self.memory is None:
            lines += [
                "Memory: not known, as the parts are not on disk yet; about 1 GB a rank, its part, and the full",
                "graph on the server's node (--mem=NG). After `llcg partition` it is computed.",
            ]
        return lines

    def options(self) -> dict[str, tuple[str, str]]:
        """Options of sbatch by name: value and reason."""
        threads = max(1, self.threads)
        cores = f"Cores of a node: {self.layout[0]} rank(s) of {threads} thread(s) each (cluster.threads)."
        options = {
            "job-name": ("llcg", ""),
            "nodes": (str(len(self.layout)), ""),
            "ntasks-per-node": ("1", ""),
            "cpus-per-task": (str(self.layout[0] * threads), cores),
        }
        if self.memory is not None:
            memory = f"{math.ceil(self.memory / 2**30)}G"
            options["mem"] = memory, "Memory of a node: what llcg doctor predicts for the fullest, and a quarter more."
        return options | {"requeue": ("", _GOING_ON), "open-mode": ("append", ""), "signal": ("B:USR1@120", "")}


def resources_of(config: Config, nodes: int | None) -> Resources:
    """The resources of a job on so many nodes; default two, or one for a job of one rank."""
    algorithm = build_algorithm(config)
    algorithm.local_steps()
    layout = ranks_per_node(num_processes(config, algorithm), nodes or _DEFAULT_NODES)
    return Resources(layout, config.cluster.threads, _memory(config, algorithm, layout))


def _memory(config: Config, algorithm: Algorithm, layout: list[int]) -> int | None:
    """The predicted bytes of the node that needs most: the server's with the largest parts, or another's with these."""
    store = store_path(config)
    if not (store / "manifest.json").exists() or not (store / "global").exists():
        return None
    server, *machines = predicted_memory(algorithm, store, read_manifest(store))
    largest = sorted(machines, key=lambda rank: rank.resident, reverse=True)
    hosts = [[server, *largest[: layout[0] - 1]], *(largest[:count] for count in layout[1:])]
    needs = [bytes_of_host(ranks) for ranks in hosts if ranks]
    return max(int(MARGIN * private) + mapped for private, mapped in needs)
