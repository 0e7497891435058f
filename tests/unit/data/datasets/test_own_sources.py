"""dataset=pyg, own and memory: the file, the function or the memory, and what is noticed when they change."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from llcg_dist.config.compose import load_config
from llcg_dist.config.own_data import MemoryConfig, OwnConfig, PygConfig
from llcg_dist.data.datasets import content_hashes, load_dataset, load_to_predict
from llcg_dist.data.datasets.memory import graph_digest, in_memory
from llcg_dist.data.partition import ensure_store
from llcg_dist.errors import UserError
from tests.helpers.graphs import community_graph
from tests.helpers.own_data import data_of, tensors_of

GRAPH = community_graph(60)
LOAD = "tests.helpers.own_data.load"


class Unwanted:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> Any:
        return print, ("this must not run",)


def saved(folder: Path, content: Any) -> PygConfig:
    torch.save(content, folder / "data.pt")
    return PygConfig(path=str(folder / "data.pt"))


@pytest.mark.parametrize(
    "content", [data_of(GRAPH), tensors_of(GRAPH), (tensors_of(GRAPH), None, type(data_of(GRAPH)))]
)
def test_a_saved_graph(tmp_path: Path, content: Any) -> None:
    """Data, a dictionary, and what PyG writes to `processed`."""
    assert graph_digest(load_dataset(saved(tmp_path, content))) == graph_digest(GRAPH)


def test_a_saved_file_runs_no_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = data_of(GRAPH)
    data.extra = Unwanted()
    with pytest.raises(UserError, match=r"^dataset.path=.*data.pt: holds \S*print, which may run code; save a Data"):
        load_dataset(saved(tmp_path, data))
    (tmp_path / "data.pt").write_bytes(pickle.dumps(Unwanted()))
    with pytest.raises(UserError, match=r"^dataset.path=.*data.pt: "):
        load_dataset(PygConfig(path=str(tmp_path / "data.pt")))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("content", [b"", b"nothing of torch's", b"PK\x03\x04 and no more"])
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data.pt").write_bytes(content)
    with pytest.raises(UserError, match=r"^dataset.path=\S*data.pt: [^\n]*$"):
        load_dataset(PygConfig(path=str(tmp_path / "data.pt")))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^dataset.path=\S*data.pt: no such file$"):
        load_dataset(PygConfig(path=str(tmp_path / "data.pt")))


def test_a_function_with_its_options() -> None:
    graph = load_dataset(OwnConfig(target=LOAD, options={"nodes": 60}))
    assert graph_digest(graph) == graph_digest(GRAPH)
    with pytest.raises(UserError, match=f"^dataset.target={LOAD}: failed when called with moons"):
        load_dataset(OwnConfig(target=LOAD, options={"moons": 2}))
    with pytest.raises(UserError, match="^dataset.target=os.getcwd: is a builtins.str; it must be a PyG Data"):
        load_dataset(OwnConfig(target="os.getcwd"))


def test_a_graph_in_memory_is_found_while_it_is_there() -> None:
    with in_memory(GRAPH) as digest:
        assert load_dataset(MemoryConfig(digest=digest)) == GRAPH
    with pytest.raises(UserError, match=r"^dataset=memory: .*its parts in partition.root are needed"):
        load_dataset(MemoryConfig(digest=digest))


def test_graphs_to_predict_on_need_no_labels(tmp_path: Path) -> None:
    unlabelled = data_of(GRAPH, y=None, train_mask=None, val_mask=None, test_mask=None)
    for config in (saved(tmp_path, unlabelled), OwnConfig(target=LOAD, options={"nodes": 60})):
        graph = load_to_predict(config, GRAPH)
        assert (graph.features == GRAPH.features).all()
        assert (graph.indices == GRAPH.indices).all()
        assert (graph.labels == -1).all()
    sample = load_to_predict(OwnConfig(target=LOAD, options={"nodes": 60}, subset=20), GRAPH)
    assert (sample.num_nodes, set(sample.labels)) == (20, {-1})


def test_a_file_that_changes_under_its_name_is_noticed(tmp_path: Path) -> None:
    saved(tmp_path, data_of(GRAPH))
    settings = ["dataset=pyg", f"dataset.path={tmp_path / 'data.pt'}", "partition=random", "cluster.num_machines=2"]
    config = load_config([*settings, f"partition.root={tmp_path / 'parts'}"])
    path, _ = ensure_store(config)
    assert np.load(path / "global" / "labels.npy").tolist() == GRAPH.labels.tolist()
    ensure_store(config)
    saved(tmp_path, data_of(community_graph(80)))
    with pytest.raises(UserError, match=r"^dataset.path=\S*data.pt: has changed since"):
        ensure_store(config)


def test_a_function_whose_text_changes_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "changing_loader.py"
    text = f"from {LOAD.rpartition('.')[0]} import load as make\n\ndef load():\n    return make(60)\n"
    module.write_text(text)
    config = OwnConfig(target="changing_loader.load")
    first = content_hashes(config)
    module.write_text(text.replace("\n\ndef", "\n\nUNRELATED = 1\n\n\ndef"))
    assert content_hashes(config) == first
    module.write_text(text.replace("60", "80"))
    assert content_hashes(config) != first
    assert first.keys() == content_hashes(config).keys() == {"target"}
    assert content_hashes(OwnConfig(target="torch_geometric.datasets.WikiCS")) == {}
    assert content_hashes(OwnConfig(target="no_such_module.load")) == {}
