"""Checks whether the ranks of a job fit into the memory of this host, and how large a correction step is."""

from collections.abc import Sequence

from llcg_dist.config.schema import Config
from llcg_dist.doctor.findings import ERROR, OK, WARN, Finding, format_bytes
from llcg_dist.doctor.memory import IMPORTS_SHARED_BYTES, RankMemory
from llcg_dist.doctor.plan import Plan
from llcg_dist.sampling.block import EDGES_PER_NODE

_LAUNCHER_BYTES = 160_000_000
"""Memory of the launcher process, `llcg train`, while its ranks run."""

MARGIN = 1.25
"""Factor by which predictions were wrong at most; a job is refused only if it exceeds the memory by more."""

_EDGES = f"{EDGES_PER_NODE // 2} edges for each of its nodes"
_LARGE_CORRECTION_BYTES = 500_000_000
"""A correction step that reads most of the graph is a warning only above this size: smaller ones are fast."""


def check_memory(ranks: Sequence[RankMemory], total: int, free: int) -> list[Finding]:
    """Compares the ranks of this host, the server first, with its `total` and `free` bytes of memory."""
    largest_machine = max(ranks[1:], key=lambda rank: rank.resident, default=None)
    shown = [ranks[0], *([largest_machine] if largest_machine else [])]
    findings = [
        Finding(
            OK,
            "memory",
            f"{rank.name}: {format_bytes(rank.private)} of its own, {format_bytes(rank.mapped)} of files mapped",
        )
        for rank in shown
    ]
    private, mapped = bytes_of_host(ranks)
    everything = private + mapped
    what = f"{len(ranks)} rank(s) need about {format_bytes(private)}, {format_bytes(everything)} with their files"
    advice = (
        "spread the ranks over several hosts (llcg help hosts), use fewer machines or a smaller model, "
        "or lower sampling.fanout, sampling.server_fanout and the batch sizes"
    )
    if private > MARGIN * total:
        findings.append(Finding(ERROR, "memory", f"{what}; this host has {format_bytes(total)} in all", advice))
    elif private > free:
        findings.append(
            Finding(WARN, "memory", f"{what}; {format_bytes(free)} are free", f"end what else runs here, or {advice}")
        )
    elif everything > free:
        slow = "files will be read from disk again and again"
        findings.append(Finding(WARN, "memory", f"{what}; {format_bytes(free)} are free, so {slow}", advice))
    else:
        findings.append(Finding(OK, "memory", f"{what}; {format_bytes(free)} are free"))
    return findings


def check_evaluation(config: Config, plan: Plan) -> list[Finding]:
    """Warns of a model of the user's own that no batch of nodes can evaluate exactly."""
    if plan.exact_evaluation:
        return []
    what = f"{config.model.target} depends on nodes at any distance (a norm over all nodes, or global attention)"
    advice = f"scores are approximate; exact with evaluate.chunk so large that the graph is one batch ({_EDGES})"
    return [Finding(WARN, "model", what, advice)]


def bytes_of_host(ranks: Sequence[RankMemory]) -> tuple[int, int]:
    """(private, mapped) bytes of a host with these ranks and their launcher."""
    private = sum(rank.private for rank in ranks) + IMPORTS_SHARED_BYTES + _LAUNCHER_BYTES
    return private, sum(rank.mapped for rank in ranks)


def check_correction(config: Config, plan: Plan, num_nodes: int, free: int) -> list[Finding]:
    """Warns of a correction step that is large: with all neighbours over three layers it may read nearly every node."""
    if plan.correction is None:
        return []
    rows, needed = plan.correction.inputs, plan.correction_bytes
    what = (
        f"a correction step with sampling.server_fanout={config.sampling.server_fanout} reads about {rows:,} rows "
        f"({100 * rows / num_nodes:.0f} % of the graph) and holds {format_bytes(needed)}"
    )
    if needed > free / 2 or (rows > num_nodes / 2 and needed > _LARGE_CORRECTION_BYTES):
        advice = (
            "sample at the server too (sampling.server_fanout=10, as the authors did), or lower train.server_batch_size"
        )
        return [Finding(WARN, "memory", what, advice)]
    return [Finding(OK, "memory", what)]
