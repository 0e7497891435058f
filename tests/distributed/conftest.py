"""What several test files share: jobs in the same three processes (each rank costs seconds of imports), a SLURM."""

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import PartitionConfig
from llcg_dist.data.derived import DataAccess
from llcg_dist.data.partition import assign_parts, ensure_store
from tests.helpers.graphs import community_graph
from tests.helpers.jobs import torchrun
from tests.helpers.slurm import Slurm, slurm_cluster

TINY = ["experiment=tiny", "cluster.num_machines=2", "num_rounds=4", "algorithm.K=3"]
ZOO = list(itertools.product(["gat", "appnp", "resgcn", "skip_sage", "mlp", "arch"], ["llcg", "psgd_pa"]))
PLAIN_AVERAGING = ["algorithm.batchnorm_stats=average", "algorithm.rho=1.0"]
BASELINES = {
    "ggs": ["algorithm=ggs"],
    "ggs_cache": ["algorithm=ggs", "algorithm.feature_cache=2000"],
    "ggs_labor": ["algorithm=ggs", "sampling.method=labor", "sampling.fanout=3"],
    "full_sync": ["algorithm=full_sync"],
    "full_sync_no_norm": ["algorithm=full_sync", "model.norm=none", "algorithm.averaging=train_nodes"],
    "subgraph_approx": ["algorithm=subgraph_approx"],
    "auto_s": ["algorithm.S=auto", "algorithm.S_max=4", "train.server_batch_size=64"],
    "diagnosed": ["diagnostics.every=2", "diagnostics.hessian_steps=2"],
    "diagnosed_halo": ["algorithm=subgraph_approx", "diagnostics.every=3", "diagnostics.hessian_steps=2"],
    "int8": ["algorithm.exchange_dtype=int8"],
    "bfloat16": ["algorithm.exchange_dtype=bfloat16", "algorithm=psgd_pa"],
    "ggs_int8": ["algorithm=ggs", "algorithm.exchange_dtype=int8"],
    "diagnosed_int8": ["diagnostics.every=2", "diagnostics.hessian_steps=2", "algorithm.exchange_dtype=int8"],
    "cut_edges": ["sampling.server_minibatch=cut_edges", "sampling.server_fanout=0.5", "sampling.fanout=0.3"],
}


def own_graph(folder: Path, train_per_part: tuple[int, int]) -> list[str]:
    """A graph in files, cut at random into two parts with so many training nodes each."""
    graph = community_graph(200)
    parts = assign_parts(graph, 2, PartitionConfig("random"))
    split = np.full(200, "test", object)
    for part, count in enumerate(train_per_part):
        nodes = np.flatnonzero(parts == part)
        split[nodes[:count]] = "train"
        split[nodes[count : count + 20]] = "val"
    folder.mkdir()
    source = np.repeat(np.arange(200), np.diff(graph.indptr))
    np.save(folder / "edges.npy", np.stack([source, graph.indices]))
    np.save(folder / "features.npy", graph.features)
    (folder / "labels.csv").write_text("node,label\n" + "".join(f"{n},{c}\n" for n, c in enumerate(graph.labels)))
    (folder / "split.csv").write_text("node,split\n" + "".join(f"{n},{s}\n" for n, s in enumerate(split)))
    files = {"edges": "edges.npy", "features": "features.npy", "labels": "labels.csv", "split": "split.csv"}
    named = [f"dataset.{key}={folder / file}" for key, file in files.items()]
    return ["dataset=files", *named, f"dataset.name={folder.name}", "partition=random"]


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One server and two machines."""
    root = tmp_path_factory.mktemp("several")
    tiny = [*TINY, f"partition.root={root}/parts"]
    store, _ = ensure_store(load_config(tiny))
    apart = {str(rank): [*TINY, f"partition.root={root}/host{rank}", f"run_dir={root}/apart"] for rank in range(3)}
    for rank, folders in enumerate((["global"], ["part1"], ["part0"])):
        host = root / f"host{rank}" / store.name
        for folder in folders:
            shutil.copytree(store / folder, host / folder)
    shutil.copy(store / "manifest.json", root / "host0" / store.name)
    # One part has a single training node and the other 60: fewer than a batch, and not as many as each other.
    one_and_many = own_graph(root / "one_and_many", (1, 60))
    small_batches = [*TINY[1:], *one_and_many, "train.local_batch_size=100", f"partition.root={root}/parts"]
    ensure_store(load_config([*tiny, "algorithm=ggs"]), access=DataAccess.FULL_TOPOLOGY)
    jobs = [
        [*tiny, f"run_dir={root}/llcg"],
        [*tiny, f"run_dir={root}/again"],
        [*tiny, "seed=1", f"run_dir={root}/other_seed"],
        [*tiny, "evaluate.every=0", f"run_dir={root}/unjudged"],
        [*tiny, *PLAIN_AVERAGING, "algorithm.S=0", f"run_dir={root}/llcg_s0"],
        [*tiny, *PLAIN_AVERAGING, "algorithm=psgd_pa", f"run_dir={root}/psgd_pa"],
        [*tiny, "model=gcn", "algorithm.averaging=train_nodes", f"run_dir={root}/gcn"],
        apart,
        *([*tiny, *overrides, f"run_dir={root}/{name}"] for name, overrides in BASELINES.items()),
        *([*small_batches, f"algorithm={method}", f"run_dir={root}/one-{method}"] for method in ("ggs", "full_sync")),
        *(
            [*tiny, f"model={model}", f"algorithm={method}", f"run_dir={root}/{model}-{method}"]
            for model, method in ZOO
        ),
    ]
    (root / "jobs.json").write_text(json.dumps(jobs))
    outcome = torchrun(3, str(Path(__file__).with_name("several.py")), str(root / "jobs.json"))
    assert outcome.code == 0, outcome.err
    return root


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with slurm_cluster(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster
