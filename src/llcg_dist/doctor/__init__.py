"""Checks before a job starts whether it can work: the host, the parts, the memory of every rank, the traffic.

host.py reads facts about the host; host_rules.py, part_rules.py and memory_rules.py turn facts into findings; plan.py,
with memory.py and batches.py, predicts the memory of the ranks, and traffic.py the bytes of a round. `llcg doctor` runs
all of it, `llcg train` the checks that take a second or two.
"""

from pathlib import Path
from typing import Any

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.config.cluster import Backend, Device
from llcg_dist.config.schema import Config
from llcg_dist.data.graph import Graph
from llcg_dist.data.store import read_shard
from llcg_dist.doctor.findings import ERROR, OK, WARN, Finding
from llcg_dist.doctor.host import Host
from llcg_dist.doctor.host_rules import check_host, check_precision
from llcg_dist.doctor.memory import RankMemory
from llcg_dist.doctor.memory_rules import check_correction, check_evaluation, check_memory
from llcg_dist.doctor.part_rules import check_parts, check_single_rows
from llcg_dist.doctor.plan import make_plan
from llcg_dist.doctor.privacy_rules import check_privacy

__all__ = ["ERROR", "OK", "WARN", "Finding", "check_job", "check_parts_and_memory", "num_processes", "predicted_memory"]


def num_processes(config: Config, algorithm: Algorithm) -> int:
    """How many processes the job has: one per rank, or a single one."""
    one_process = not algorithm.trains_on_parts or config.cluster.backend == Backend.loopback
    return 1 if one_process else 1 + config.cluster.num_machines


def check_job(config: Config, algorithm: Algorithm, store: Path, manifest: dict[str, Any], host: Host) -> list[Finding]:
    """All checks of a job whose ranks all run on this host; takes a second or two."""
    host_findings = check_host(host, config.cluster, num_processes(config, algorithm))
    return [
        *host_findings,
        *check_precision(host, config),
        *check_privacy(config),
        *check_parts_and_memory(config, algorithm, store, manifest, host),
    ]


def check_parts_and_memory(
    config: Config,
    algorithm: Algorithm,
    store: Path,
    manifest: dict[str, Any],
    host: Host,
    ranks_here: int | None = None,
) -> list[Finding]:
    """`ranks_here`: the number of ranks that run on this host, of which one is the server; default: all ranks."""
    findings = check_parts(algorithm, manifest) if algorithm.trains_on_parts else []
    if any(finding.level == ERROR for finding in findings):
        return findings
    full_graph, part_graphs = _graphs(algorithm, store, manifest)
    on_gpu = host.gpus > 0 and config.cluster.device != Device.cpu
    plan = make_plan(algorithm, full_graph, part_graphs, on_gpu)
    server, *machines = plan.ranks
    local_ranks = [server, *sorted(machines, key=lambda rank: rank.resident, reverse=True)][:ranks_here]
    trained_graphs = {f"part {part}": graph for part, graph in enumerate(part_graphs)}
    if config.algorithm.corrects or not part_graphs:
        trained_graphs["the graph"] = full_graph
    return [
        *findings,
        *check_single_rows(config, trained_graphs),
        *check_memory(local_ranks, host.memory_total, host.memory_free),
        *check_evaluation(config, plan),
        *check_correction(config, plan, full_graph.num_nodes, host.memory_free),
    ]


def predicted_memory(algorithm: Algorithm, store: Path, manifest: dict[str, Any]) -> list[RankMemory]:
    """The memory of every rank, the server's first, where nothing runs on a GPU."""
    return make_plan(algorithm, *_graphs(algorithm, store, manifest)).ranks


def _graphs(algorithm: Algorithm, store: Path, manifest: dict[str, Any]) -> tuple[Graph, list[Graph]]:
    """The full graph and the parts that the machines train on."""
    parts = range(manifest["num_parts"]) if algorithm.trains_on_parts else []
    return read_shard(store / "global").graph, [read_shard(store / f"part{part}").graph for part in parts]
