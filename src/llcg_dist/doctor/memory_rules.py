"""Whether the ranks of a job fit into the memory of this host, and the server's correction into what is left."""

from collections.abc import Sequence

from llcg_dist.config.schema import Config
from llcg_dist.doctor.findings import ERROR, OK, WARN, Finding, size
from llcg_dist.doctor.memory import IMPORTS_SHARED, Need
from llcg_dist.doctor.plan import Plan

_LAUNCHER = 160_000_000
"""What `llcg train` itself keeps while its ranks run."""

_MARGIN = 1.25
"""How far predictions were off; only a job that is beyond it is refused."""

_LARGE_CORRECTION = 500_000_000
"""A correction that reads most of the graph is worth a word only where it takes long, too."""


def check_memory(ranks: Sequence[Need], total: int, free: int) -> list[Finding]:
    """These ranks, the server first, run on a host with `total` bytes of memory, `free` of them free."""
    largest = max(ranks[1:], key=lambda need: need.resident, default=None)
    told = [ranks[0], *([largest] if largest else [])]
    findings = [
        Finding(OK, "memory", f"{need.name}: {size(need.private)} of its own, {size(need.mapped)} of files mapped")
        for need in told
    ]
    private = sum(need.private for need in ranks) + IMPORTS_SHARED + _LAUNCHER
    everything = private + sum(need.mapped for need in ranks)
    what = f"{len(ranks)} rank(s) need about {size(private)}, {size(everything)} with their files"
    advice = (
        "spread the ranks over several hosts (docs/launch.md), use fewer machines or a smaller model, "
        "or lower sampling.fanout, sampling.server_fanout and the batch sizes"
    )
    if private > _MARGIN * total:
        findings.append(Finding(ERROR, "memory", f"{what}; this host has {size(total)} in all", advice))
    elif private > free:
        findings.append(
            Finding(WARN, "memory", f"{what}; {size(free)} are free", f"end what else runs here, or {advice}")
        )
    elif everything > free:
        slow = "files will be read from disk again and again"
        findings.append(Finding(WARN, "memory", f"{what}; {size(free)} are free, so {slow}", advice))
    else:
        findings.append(Finding(OK, "memory", f"{what}; {size(free)} are free"))
    return findings


def check_correction(config: Config, plan: Plan, num_nodes: int, free: int) -> list[Finding]:
    """Full neighbours over three layers of a dense graph touch nearly every node."""
    if plan.correction is None:
        return []
    rows, needed = plan.correction.inputs, plan.correction_bytes
    what = (
        f"a correction step with sampling.server_fanout={config.sampling.server_fanout} reads about {rows:,} rows "
        f"({100 * rows / num_nodes:.0f} % of the graph) and holds {size(needed)}"
    )
    if needed > free / 2 or (rows > num_nodes / 2 and needed > _LARGE_CORRECTION):
        advice = (
            "sample at the server too (sampling.server_fanout=10, as the authors did), or lower train.server_batch_size"
        )
        return [Finding(WARN, "memory", what, advice)]
    return [Finding(OK, "memory", what)]
