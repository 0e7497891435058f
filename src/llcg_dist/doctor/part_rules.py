"""Checks whether the parts suit the job: their number, training nodes, balance, cut edges, label skew."""

from collections.abc import Mapping
from typing import Any

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.config.schema import Config
from llcg_dist.data.cut import label_skew
from llcg_dist.data.derived import DataAccess
from llcg_dist.data.graph import TRAIN, Graph, neighbours
from llcg_dist.doctor.findings import ERROR, OK, WARN, Finding
from llcg_dist.models.registry import structure

_IMBALANCE_RATIO = 1.5
"""Warn of a part that is larger than the mean by this factor: it takes that much more memory, or time."""

_LABEL_SKEW = 0.2
"""Total variation distance between a part's label shares and the full graph's from which on balanced parts help: all
measured graphs at 0.22 and above gained three points or more with psgd_pa (llcg help performance)."""
_BALANCED = "partition.balance=labels makes parts alike"

_OTHER_PARTS = "another partition.seed, or partition=random"


def check_parts(algorithm: Algorithm, manifest: dict[str, Any]) -> list[Finding]:
    """All checks that need the manifest alone."""
    return [
        *check_num_parts(algorithm.config, manifest),
        *check_training_nodes(manifest),
        *check_balance(manifest),
        *check_cut_edges(manifest),
        *check_labels(algorithm, manifest),
    ]


def check_num_parts(config: Config, manifest: dict[str, Any]) -> list[Finding]:
    machines, parts = config.cluster.num_machines, manifest["num_parts"]
    if parts != machines:
        advice = "set cluster.num_machines to it, or build the parts again with `llcg partition`"
        return [Finding(ERROR, "parts", f"cluster.num_machines={machines}, but the store has {parts} part(s)", advice)]
    return [Finding(OK, "parts", f"{parts} part(s) for {machines} machine(s)")]


def check_training_nodes(manifest: dict[str, Any]) -> list[Finding]:
    counts = [part["train_nodes"] for part in manifest["parts"]]
    advice = f"use fewer machines (cluster.num_machines), {_OTHER_PARTS}"
    empty = [Finding(ERROR, "parts", f"part {p} has no training node", advice) for p, n in enumerate(counts) if n == 0]
    return empty or [Finding(OK, "parts", f"{min(counts):,} to {max(counts):,} training nodes in a part")]


def check_single_rows(config: Config, graphs: Mapping[str, Graph]) -> list[Finding]:
    """Finds graphs ({name: graph}) whose batches may have a single row, for which BatchNorm raises in training mode."""
    findings, model = [], structure(config.model)
    for name, graph in graphs.items() if model.has_batchnorm else []:
        training = graph.nodes_in(TRAIN)
        isolated = len(training) == 1 and not len(neighbours(graph, training))
        if isolated or (len(training) == 1 and model.has_batchnorm_after_message_passing):
            what = f"{name} has one training node, and BatchNorm cannot normalise a batch of one row"
            advice = f"use model.norm=none, fewer machines, {_OTHER_PARTS}"
            findings.append(Finding(ERROR, "parts", what, advice))
    return findings


def check_balance(manifest: dict[str, Any]) -> list[Finding]:
    findings = []
    advice = {
        "nodes": f"the largest part sets the memory a machine needs: {_OTHER_PARTS}",
        "edges": f"the densest part sets the time a round takes: {_OTHER_PARTS}",
        "train_nodes": f"weigh the parts with algorithm.averaging=train_nodes, or try {_OTHER_PARTS}",
    }
    for key, key_advice in advice.items():
        counts = [part[key] for part in manifest["parts"]]
        ratio = max(counts) * len(counts) / max(1, sum(counts))
        what = f"{key.replace('_', ' ')}: the largest part has {ratio:.2f} times the mean"
        findings.append(
            Finding(WARN, "parts", what, key_advice) if ratio > _IMBALANCE_RATIO else Finding(OK, "parts", what)
        )
    return findings


def check_cut_edges(manifest: dict[str, Any]) -> list[Finding]:
    share = manifest["cut_edges"] / max(1, manifest["num_edges"])
    what = f"{manifest['cut_edges']:,} of {manifest['num_edges']:,} edges are cut ({100 * share:.1f} %)"
    random = manifest.get("partitioner") == "random" and manifest["num_parts"] > 1
    return [Finding(OK, "parts", what, "partition=metis usually cuts fewer" if random else "")]


def check_labels(algorithm: Algorithm, manifest: dict[str, Any]) -> list[Finding]:
    skews = [label_skew(part["label_counts"], manifest["label_counts"]) for part in manifest["parts"]]
    worst = max(range(len(skews)), key=skews.__getitem__)
    what = f"labels: shares in part {worst} are {100 * skews[worst]:.0f} % away from the whole graph's, the most of all"
    sees_cut_edges = algorithm.data_access is DataAccess.FULL_TOPOLOGY
    if skews[worst] <= _LABEL_SKEW or sees_cut_edges:
        return [Finding(OK, "parts", what)]
    if algorithm.config.algorithm.corrects:
        return [Finding(OK, "parts", what, _BALANCED)]
    advice = f"averaging alone loses accuracy on such parts: {_BALANCED}; or use algorithm=llcg with S of 1 or more"
    return [Finding(WARN, "parts", what, advice)]
