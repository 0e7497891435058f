"""A graph in files with words for ids and classes, and what `llcg predict` says about it."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from llcg_dist.config.datasets import SyntheticConfig
from llcg_dist.data.datasets.synthetic import generate
from llcg_dist.predict import predict

COLUMNS = ["first", "second", "third", "fourth"]
NAMES = np.array(["ant", "bee", "cow"])


def write_named_graph(folder: Path) -> None:
    """features.csv, edges.parquet, labels.csv (two nodes without), and several.csv with several labels a node."""
    graph = generate(SyntheticConfig(nodes=90, classes=3, degree=8, homophily=0.8, features=4, signal=0.8))
    ids = np.array([f"n{i:03d}" for i in np.random.default_rng(0).permutation(90)])
    features = pd.DataFrame(graph.features, columns=COLUMNS)
    features.insert(0, "node", ids)
    features.to_csv(folder / "features.csv", index=False)
    row = np.repeat(np.arange(90), np.diff(graph.indptr))
    pd.DataFrame({"src": ids[row], "dst": ids[graph.indices]}).to_parquet(folder / "edges.parquet")
    labels = pd.DataFrame({"node": ids, "label": NAMES[graph.labels]})
    labels.loc[[3, 5], "label"] = None
    labels.to_csv(folder / "labels.csv", index=False)
    several = pd.DataFrame({"node": ids} | {name: (graph.labels == i) * 1 for i, name in enumerate(NAMES)})
    several["odd"] = np.arange(90) % 2
    several.to_csv(folder / "several.csv", index=False)


def settings(home: Path, **other: Any) -> list[str]:
    files = {"edges": "edges.parquet", "features": "features.csv", "labels": "labels.csv"} | other
    quick = ["model.hidden=8", "algorithm.K=4", "num_rounds=14", "cluster.num_machines=2", "cluster.backend=loopback"]
    place = [f"partition.root={home / 'parts'}", "partition=random"]
    return ["dataset=files", *(f"dataset.{key}={home / value}" for key, value in files.items()), *quick, *place]


def predictions(run_dir: Path, *arguments: str) -> pd.DataFrame:
    out = predict([f"run_dir={run_dir}", *arguments])
    return pd.read_csv(out) if out.suffix == ".csv" else pd.read_parquet(out)
