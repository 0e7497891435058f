"""Section `partition`: how the graph is cut into parts, and where they are kept."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from llcg_dist.config.section import Section


class PartitionMethod(StrEnum):
    metis = "metis"
    random = "random"
    clusters = "clusters"
    stream = "stream"
    auto = "auto"
    given = "given"


class PartitionBackend(StrEnum):
    auto = "auto"
    dgl = "dgl"
    pymetis = "pymetis"


class Balance(StrEnum):
    none = "none"
    nodes = "nodes"
    train = "train"
    labels = "labels"


class FeaturesDtype(StrEnum):
    given = "given"
    float16 = "float16"


class NodeOrder(StrEnum):
    given = "given"
    parts = "parts"


if TYPE_CHECKING:
    Balances = Balance | list[Balance]
else:
    Balances = Any  # OmegaConf knows no union with a list: PartitionConfig.check does what it would do


@dataclass
class PartitionConfig(Section):
    section: ClassVar[str] = "partition"

    method: PartitionMethod = PartitionMethod.metis
    """metis (few cut edges), stream (nearly as few, in a fraction of METIS's memory), auto (metis if memory suffices,
    else stream), random, clusters (many METIS clusters, distributed over the parts) or given (from a file)."""
    seed: int = 0
    """Seed of the partitioner; independent of `seed`, so that runs with other seeds share the parts."""
    root: str = "partitions"
    """Folder of the partition stores."""
    backend: PartitionBackend = PartitionBackend.auto
    """METIS library: dgl, pymetis, or auto (dgl if it is installed, else pymetis)."""
    balance: Balances = Balance.none
    """What METIS, stream and clusters balance besides the number of nodes: none, train (training nodes), labels
    (training nodes of each class), nodes (no more than that), or a list."""
    clusters: int = 16
    """clusters: number of METIS clusters per part."""
    file: str | None = None
    """given: .npy [N] with the part of every node, or .csv or .parquet with the columns node and part."""
    features_dtype: FeaturesDtype = FeaturesDtype.given
    """Data type of stored features: given (float32, or float16 if the data has float16), or float16 (half the disk and
    memory, rounded to three digits). Models compute in float32 either way."""
    order: NodeOrder = NodeOrder.given
    """Node order of the stored whole graph: given (as in the data), or parts (by part, so that neighbours are closer in
    memory). Predictions are in the order of the data either way."""

    @property
    def balances(self) -> set[str]:
        given = self.balance if isinstance(self.balance, list) else [self.balance]
        return {str(name) for name in given}

    def check(self) -> None:
        super().check()
        self.at_least(0, "seed")
        self.at_least(1, "clusters")
        choices = list(Balance)
        rule = f"must be one of {', '.join(choices)}, or a list of them"
        self.require(bool(self.balances) and self.balances <= set(choices), "balance", rule)
        cuts = self.method not in (PartitionMethod.random, PartitionMethod.given)
        plain = self.balances <= {Balance.none, Balance.nodes}
        rule = f"has no effect with partition={self.method}; leave it out, or, where a preset brings it, set it to none"
        self.require(cuts or plain, "balance", rule)
        streams = self.method == PartitionMethod.stream
        rule = "stream takes pymetis' METIS for its clusters; leave it out"
        self.require(not (streams and self.backend == PartitionBackend.dgl), "backend", rule)
        given = self.method == PartitionMethod.given
        self.require(bool(self.file) or not given, "file", "must name a file with partition=given (llcg help graph)")
        self.require(given or not self.file, "file", f"has no effect with partition={self.method}; use partition=given")
