"""Models, methods and data of the user's own in fit: its model is that of `llcg predict`, its bits those of `llcg
train`."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hydra.utils import get_object

import llcg_dist
from llcg_dist.errors import UserError
from llcg_dist.predict import TrainedModel
from tests.helpers.graphs import community_graph
from tests.helpers.jobs import REPOSITORY
from tests.helpers.own_data import data_of
from tests.helpers.own_models import SparseProduct
from tests.helpers.training import train_in_process

DATA = data_of(community_graph(90))
QUICK = {"algorithm.K": 2, "cluster.backend": "loopback", "partition": "random", "logger": "none"}
SMALL = {"hidden_channels": 8, "num_layers": 2}
MODELS: dict[str, dict[str, Any]] = {
    "torch_geometric.nn.GCN": SMALL | {"norm": "batch_norm"},  # whose normalisation reads degrees one hop further
    "torch_geometric.nn.GraphSAGE": SMALL,
    "tests.helpers.own_models.GatV2": {"heads": 3},
    "tests.helpers.own_models.Jumping": {},
    "sage": {},
    "gcn": {},
}
"""Others of ours: tests/unit/models/test_full_graph.py."""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("name", "chunk"), [*((name, 10) for name in MODELS), ("torch_geometric.nn.GCN", 65_536)])
def test_the_model_gives_what_predict_says(name: str, chunk: int) -> None:
    """Evaluated in batches of nodes with all their neighbours, or on the graph as a whole."""
    settings = QUICK | {"model.options": MODELS[name], "evaluate.chunk": chunk}
    run = llcg_dist.fit(DATA, name, machines=2, rounds=2, overrides=settings)
    trained = TrainedModel(run.path)
    with torch.no_grad():
        logits = run.model()(DATA.x, DATA.edge_index)
    assert logits.argmax(dim=1).tolist() == run.predict()["class"].tolist()
    expected = trained.logits(trained.trained)
    assert (logits - expected).abs().max() <= 1e-4 * expected.abs().max()


def test_all_of_ones_own_has_the_bits_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples: a graph in memory and two classes here, three dotted paths there."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "examples"))
    targets = {"dataset": "own_dataset.ring_of_cliques", "model": "own_model.Net", "algorithm": "own_method.FedProx"}
    ring_of_cliques, net, fed_prox = (get_object(target) for target in targets.values())
    options = QUICK | {"model.options.heads": 3, "algorithm.options.mu": 0.5}
    run = llcg_dist.fit(ring_of_cliques(20), net, fed_prox, machines=2, rounds=3, run_dir="here", overrides=options)
    named = [f"{group}=own {group}.target={target}" for group, target in targets.items()]
    settings = [f"{key}={value}" for key, value in options.items()]
    job = [*" ".join(named).split(), "dataset.options.cliques=20", *settings, "cluster.num_machines=2", "num_rounds=3"]
    train_in_process(*job, "run_dir=there")
    train_in_process(*job, "run_dir=other", "algorithm.options.mu=0")
    for file in ("model.pt", "best.pt"):
        assert (run.path / file).read_bytes() == Path("there", file).read_bytes()
        assert (run.path / file).read_bytes() != Path("other", file).read_bytes()
    assert run.predict().equals(llcg_dist.load("there").predict())


def test_a_product_with_a_sparse_matrix_of_torchs_trains() -> None:
    settings = QUICK | {"model.layers": 1}
    run = llcg_dist.fit(DATA, SparseProduct, "llcg", machines=2, rounds=2, overrides=settings)
    assert run.history["round"].tolist() == [1, 2]


def test_overrides_that_are_no_mapping_are_refused() -> None:
    with pytest.raises(UserError, match=r"^overrides: must be a mapping"):
        llcg_dist.fit(DATA, overrides=["cluster.backend=loopback"])  # type: ignore[arg-type]
