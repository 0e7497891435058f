"""Damaged files of a graph of one's own: each is read, or refused in one line."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from llcg_dist.config.files import FilesConfig
from llcg_dist.data.datasets import load_dataset
from tests.fuzz.bombard import bombard, damaged
from tests.helpers.mutate import mutate_bytes


def own_graph(folder: Path) -> dict[str, Path]:
    """A graph in every format that a user may bring."""
    rng = np.random.default_rng(0)
    nodes = [f"n{i}" for i in range(30)]
    edges = pd.DataFrame({"src": rng.choice(nodes, 80), "dst": rng.choice(nodes, 80)})
    features = pd.DataFrame({"node": nodes, "a": rng.standard_normal(30), "b": rng.standard_normal(30)})
    labels = pd.DataFrame({"node": nodes, "label": rng.choice(["x", "y"], 30)})
    split = pd.DataFrame({"node": nodes, "split": rng.choice(["train", "val", "test"], 30)})
    tables = {"edges": edges, "features": features, "labels": labels, "split": split}
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
        table.to_parquet(folder / f"{name}.parquet", index=False)
    np.save(folder / "edges.npy", rng.integers(0, 30, (2, 80)))
    np.save(folder / "features.npy", rng.standard_normal((30, 4), dtype=np.float32))
    pd.DataFrame({"node": range(30), "label": rng.integers(0, 2, 30)}).to_csv(folder / "numbered.csv", index=False)
    return {path.name: path for path in folder.iterdir()}


def test_own_graphs(tmp_path: Path) -> None:
    files = own_graph(tmp_path)
    contents = {name: path.read_bytes() for name, path in files.items()}
    choices = [
        {"edges": f"edges.{kind}", "features": f"features.{kind}", "labels": f"labels.{kind}", "split": f"split.{kind}"}
        for kind in ("csv", "parquet")
    ] + [{"edges": "edges.npy", "features": "features.npy", "labels": "numbered.csv"}]

    def attempt(chance: random.Random) -> None:
        chosen = chance.choice(choices)
        victim = chosen[chance.choice(sorted(chosen))]
        with damaged(files[victim], mutate_bytes(chance, contents[victim])):
            named: dict[str, Any] = {setting: str(files[name]) for setting, name in chosen.items()}
            graph = load_dataset(FilesConfig(**named))
            assert np.isfinite(graph.features).all()
            assert graph.indptr[-1] == len(graph.indices)
            assert 0 <= graph.indices.min(initial=0) <= graph.indices.max(initial=0) < graph.num_nodes

    bombard(0.15, attempt)
