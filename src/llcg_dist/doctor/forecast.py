"""The costs of all stages that are still to come, with this host's rates: what `llcg doctor --stages` shows."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.config.partition import PartitionMethod
from llcg_dist.data.parts import settle_method
from llcg_dist.data.workspace import memory_for_loading
from llcg_dist.doctor.findings import format_bytes
from llcg_dist.doctor.host import Host
from llcg_dist.doctor.rates import Rates
from llcg_dist.doctor.sizes import GraphSize
from llcg_dist.doctor.stages import CUT, StageCost, partition_stages
from llcg_dist.doctor.training_stages import EVALUATE, MACHINE, SERVER, training_stages

LARGE_ENTRIES = 20_000_000
"""Entries of a topology from which on plain `llcg doctor` predicts the stages before it builds the parts."""
_METHODS_WITH_METIS = (PartitionMethod.metis, PartitionMethod.clusters)


@dataclass(frozen=True)
class Forecast:
    """What is predicted, and of what graph."""

    size: GraphSize
    method: str
    free_memory: int
    """Bytes, when it was predicted."""
    stages: Mapping[str, StageCost]

    def as_json(self) -> dict[str, Any]:
        sizes = {"nodes": self.size.nodes, "edges": self.size.edges, "features": self.size.features}
        stages = {
            name: {
                "seconds": cost.seconds,
                "cpu": cost.cpu,
                "anonymous": cost.anonymous,
                "mapped": cost.mapped,
                "disk": cost.disk,
            }
            for name, cost in self.stages.items()
        }
        return sizes | {"partition": self.method, "free_memory": self.free_memory, "stages": stages}

    def rows(self) -> list[list[str]]:
        """Cells of a table: stage, time, memory, mapped files, disk."""
        return [
            [
                _title(name, self.method),
                format_seconds(cost.seconds),
                format_bytes(cost.anonymous),
                format_bytes(cost.mapped),
                format_bytes(cost.disk) if cost.disk else "",
            ]
            for name, cost in self.stages.items()
        ]


HEADER = ["stage", "time", "memory", "mapped files", "disk"]


def forecast(algorithm: Algorithm, size: GraphSize, host: Host, start: float, has_store: bool) -> Forecast:
    """Probes this host for some seconds. `start`: CPU seconds that this process took to begin; with `has_store` the
    parts are there already."""
    # The models and the kernels take seconds to import.
    from llcg_dist.doctor.probe_partition import measure_partition
    from llcg_dist.doctor.probe_training import measure_training

    config = algorithm.config
    partition = settle_method(config.partition, size.entries, lambda line: None)
    num_parts = config.cluster.num_machines
    measured = measure_partition(
        size, num_parts, existing_folder(Path(partition.root)), start, partition.method in _METHODS_WITH_METIS
    )
    training, costs = measure_training(algorithm, size)
    for_loading = memory_for_loading(getattr(config.dataset, "memory", None))
    rates = Rates(measured, training, host.cores, for_loading, host.memory_free)
    stages = {} if has_store else partition_stages(size, partition, num_parts, rates)
    return Forecast(
        size, str(partition.method), host.memory_free, stages | training_stages(algorithm, size, costs, rates)
    )


def existing_folder(path: Path) -> Path:
    """The folder, or the nearest one above it that is there; a temporary one where that cannot be written."""
    path = path.absolute()
    found = next(folder for folder in (path, *path.parents) if folder.is_dir())
    try:
        with tempfile.TemporaryFile(dir=found):
            return found
    except OSError:
        return Path(tempfile.gettempdir())


def format_seconds(seconds: float) -> str:
    """0.4 s, 35 s, 12 min, 3.5 h."""
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _title(name: str, method: str) -> str:
    if name == CUT:
        return f"{CUT} ({method})"
    return f"  {name}" if name in (SERVER, MACHINE, EVALUATE) else name
