"""partition.json of a run."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from llcg_dist.data.partition import ensure_store
from llcg_dist.data.store import read_shard
from llcg_dist.records.partition import record_partition
from tests.helpers.graphs import rows_of
from tests.helpers.partitions import store_settings


def test_the_parts_are_described_once(tmp_path: Path) -> None:
    store, manifest = ensure_store(store_settings(tmp_path, "random"))
    full = read_shard(store / "global")
    record_partition(tmp_path, manifest, full)
    recorded = json.loads((tmp_path / "partition.json").read_text())
    assert (recorded["partitioner"], recorded["num_parts"], recorded["num_nodes"]) == ("random", 3, 300)
    assert recorded["parts"] == manifest["parts"]
    part, between = full.extra["assignment"].tolist(), [[0] * 3 for _ in range(3)]
    for node, row in enumerate(rows_of(full.graph.indptr, full.graph.indices)):
        for other in row:
            between[part[node]][part[other]] += 1
    assert recorded["edges_between_parts"] == between
    assert "class_names" not in recorded
    (tmp_path / "named").mkdir()
    names = {"class": np.array(["ant", "bee", "cow"])}
    record_partition(tmp_path / "named", manifest, replace(full, graph=replace(full.graph, names=names)))
    assert json.loads((tmp_path / "named" / "partition.json").read_text())["class_names"] == ["ant", "bee", "cow"]
    (tmp_path / "partition.json").write_text("kept")
    record_partition(tmp_path, manifest, full)
    assert (tmp_path / "partition.json").read_text() == "kept"
