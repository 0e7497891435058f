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
    computers = ["dataset=amazon", "dataset.name=Computers", _root(data / "Amazon")]
    return {
        "six classes": [_GENERATED, "dataset.nodes=20000", "dataset.classes=6", "dataset.degree=12",
                        "dataset.features=32", "dataset.homophily=0.55", "dataset.seed=7"],
        "wrong labels": [_GENERATED, "dataset.nodes=30000", "dataset.classes=12", "dataset.label_noise=0.3",
                         "dataset.seed=8"],
        "many neighbours": [_GENERATED, "dataset.nodes=40000", "dataset.classes=30", "dataset.degree=40",
                            "dataset.homophily=0.35", "dataset.seed=9"],
        "few labels": [_GENERATED, "dataset.nodes=40000", "dataset.classes=20", "dataset.train_fraction=0.03",
                       "dataset.homophily=0.6", "dataset.seed=10"],
        "half of Computers": [*computers, "dataset.subset=7000", "dataset.seed=3"],
        "Computers, features dealt out": _dealt_out(computers, out / "dealt_out"),
        "half of Tolokers": ["dataset=heterophilous", "dataset.name=Tolokers", "dataset.split=4",
                             _root(data / "Hetero"), "dataset.subset=6000", "dataset.seed=3"],
        "a third of WordNet": [*wordnet_settings(data / WORDNET), "dataset.subset=40000", "dataset.seed=3"],
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
