"""The eight graphs of studies/advice.py: none of them, nor their settings, had a say in how `llcg advise` decides."""

from pathlib import Path

import numpy as np

from llcg_dist.config.compose import load_config, quoted_override
from llcg_dist.data.datasets import load_dataset
from studies.wordnet import WORDNET
from studies.wordnet import settings as wordnet_settings

_GENERATED = "dataset=synthetic"


def graphs(data: Path, out: Path) -> dict[str, list[str]]:
    """{name: settings}: generated ones that differ in what makes distribution pay, parts of real ones, and a real one
    whose features were dealt out to other nodes, which is written to `out`."""
    cora = ["dataset=planetoid", "dataset.name=Cora", _root(data / "Planetoid")]
    return {
        "three classes": [_GENERATED, "dataset.nodes=15000", "dataset.classes=3", "dataset.degree=8",
                          "dataset.features=24", "dataset.homophily=0.6", "dataset.seed=21"],
        "many features": [_GENERATED, "dataset.nodes=25000", "dataset.classes=16", "dataset.features=300",
                          "dataset.degree=20", "dataset.homophily=0.5", "dataset.seed=22"],
        "few neighbours": [_GENERATED, "dataset.nodes=60000", "dataset.classes=25", "dataset.degree=6",
                           "dataset.homophily=0.7", "dataset.seed=23"],
        "dense, wrong labels": [_GENERATED, "dataset.nodes=20000", "dataset.classes=8", "dataset.degree=60",
                                "dataset.homophily=0.4", "dataset.label_noise=0.2", "dataset.seed=24"],
        "a third of Computers": ["dataset=amazon", "dataset.name=Computers", _root(data / "Amazon"),
                                 "dataset.subset=4500", "dataset.seed=5"],
        "two thirds of Tolokers": ["dataset=heterophilous", "dataset.name=Tolokers", "dataset.split=2",
                                   _root(data / "Hetero"), "dataset.subset=8000", "dataset.seed=5"],
        "half of WordNet": [*wordnet_settings(data / WORDNET), "dataset.subset=60000", "dataset.seed=5"],
        "Cora, features dealt out": _dealt_out(cora, out / "dealt_out"),
    }  # fmt: skip


def _root(folder: Path) -> str:
    return quoted_override("dataset.root", str(folder))


def _dealt_out(settings: list[str], folder: Path) -> list[str]:
    """The graph with every node's features given to another one: only edges tell something of its class."""
    graph = load_dataset(load_config(settings).dataset)
    order = np.random.default_rng(11).permutation(graph.num_nodes)
    rows = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))
    arrays = {"edges": np.stack([rows, graph.indices]), "features": graph.features[order], "labels": graph.labels}
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    files = [quoted_override(f"dataset.{name}", str(folder.absolute() / f"{name}.npy")) for name in arrays]
    return ["dataset=files", "dataset.name=dealt_out", *files]
