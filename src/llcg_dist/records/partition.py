"""Writes partition.json, a run directory's description of the graph's parts."""

from pathlib import Path
from typing import Any

from llcg_dist.data.atomic_files import write_json
from llcg_dist.data.cut import edges_between_parts
from llcg_dist.data.store import Shard

PARTITION_FILE = "partition.json"


def record_partition(run_dir: Path, manifest: dict[str, Any], full_graph: Shard) -> None:
    """Writes partition.json unless it exists: sizes, labels and cut of the parts, so that a report needs no store."""
    path = run_dir / PARTITION_FILE
    if path.exists():
        return
    keys = ("partitioner", "seed", "num_parts", "num_nodes", "num_edges", "cut_edges", "label_counts", "parts")
    between = edges_between_parts(full_graph.graph, full_graph.extra["assignment"], manifest["num_parts"])
    names = full_graph.graph.names.get("class")
    class_names = {} if names is None else {"class_names": [str(name) for name in names]}
    content = {key: manifest[key] for key in keys} | class_names
    write_json(path, content | {"edges_between_parts": between.tolist()})
