"""Whether a job can work, before anything starts: from the manifest of its parts and the host it is to run on.

host.py reads the facts, *_rules.py turn facts into findings; plan.py, with memory.py and batches.py, predicts what
ranks will need, traffic.py what they will send. `llcg doctor` shows it all, every `llcg train` begins with the cheap
part.
"""

from pathlib import Path
from typing import Any

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.config.facts import corrects
from llcg_dist.config.schema import Config
from llcg_dist.data.store import read_shard
from llcg_dist.doctor.findings import ERROR, OK, WARN, Finding
from llcg_dist.doctor.host import Host
from llcg_dist.doctor.host_rules import check_host
from llcg_dist.doctor.memory_rules import check_correction, check_memory
from llcg_dist.doctor.part_rules import check_parts, check_single_rows
from llcg_dist.doctor.plan import make_plan

__all__ = ["ERROR", "OK", "WARN", "Finding", "check_job", "check_parts_and_memory", "num_processes"]


def num_processes(config: Config, algorithm: Algorithm) -> int:
    """How many processes the job is."""
    alone = not algorithm.trains_on_parts or config.cluster.backend == "loopback"
    return 1 if alone else 1 + config.cluster.num_machines


def check_job(config: Config, algorithm: Algorithm, store: Path, manifest: dict[str, Any], host: Host) -> list[Finding]:
    """Every check that takes no longer than a second or two."""
    here = check_host(host, config.cluster, num_processes(config, algorithm))
    return [*here, *check_parts_and_memory(config, algorithm, store, manifest, host)]


def check_parts_and_memory(
    config: Config,
    algorithm: Algorithm,
    store: Path,
    manifest: dict[str, Any],
    host: Host,
    ranks_here: int | None = None,
) -> list[Finding]:
    """`ranks_here`: how many of the ranks run on this host, the server among them; default all."""
    findings = check_parts(config, manifest) if algorithm.trains_on_parts else []
    if any(finding.level == ERROR for finding in findings):
        return findings
    whole = read_shard(store / "global").graph
    parts = range(manifest["num_parts"]) if algorithm.trains_on_parts else []
    graphs = [read_shard(store / f"part{part}").graph for part in parts]
    on_gpu = host.gpus > 0 and config.cluster.device != "cpu"
    plan = make_plan(config, whole, graphs, algorithm.trains_on_parts, on_gpu)
    server, *machines = plan.ranks
    here = [server, *sorted(machines, key=lambda need: need.resident, reverse=True)][:ranks_here]
    trained = {f"part {part}": graph for part, graph in enumerate(graphs)}
    if corrects(config) or not graphs:
        trained["the graph"] = whole
    return [
        *findings,
        *check_single_rows(config, trained),
        *check_memory(here, host.memory_total, host.memory_free),
        *check_correction(config, plan, whole.num_nodes, host.memory_free),
    ]
