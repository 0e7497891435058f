"""`fit`: trains a model over a graph, in processes of their own or, on loopback, in this one."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.api.here import train_here
from llcg_dist.api.processes import train_in_processes
from llcg_dist.api.run import Run
from llcg_dist.api.settings import (
    Target,
    data_overrides,
    given_settings,
    overrides_of,
    require_importable,
    target_overrides,
)
from llcg_dist.config.cluster import Backend
from llcg_dist.config.compose import load_config
from llcg_dist.config.own_data import MemoryConfig
from llcg_dist.data.datasets.memory import in_memory
from llcg_dist.data.datasets.objects import to_graph
from llcg_dist.data.partition import ensure_store
from llcg_dist.errors import UserError
from llcg_dist.job.run_dir import choose_run_dir, claim_run_dir, remove_if_nothing_recorded
from llcg_dist.records.console import say


def fit(
    data: Any,
    model: Target | None = None,
    algorithm: Target | None = None,
    machines: int | None = None,
    rounds: int | None = None,
    run_dir: str | Path | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Run:
    """Trains a model on a graph with one server process and one process per machine, and returns the run.

    data       a PyG Data or Dataset with one graph, a DGL graph, or a Graph. Its masks are the split; without masks
               the split is random. Or settings of a data set, such as "dataset=planetoid dataset.name=Cora"
    model      name of a preset ("gcn"); or a class or function, or its dotted path, that is called with in_channels,
               out_channels and model.options and returns a module with forward(x, edge_index)
    algorithm  name of a preset ("llcg_plus"); or a subclass of llcg_dist.Algorithm, or its dotted path
    machines   number of machines, which is the number of parts (cluster.num_machines)
    rounds     number of communication rounds (num_rounds)
    run_dir    folder of the run. If it holds a finished run, fit returns it; an unfinished run is resumed
    overrides  other settings by name, as listed by `llcg train --help`

    Raises UserError, with a one-line message, for invalid settings or data, and TrainingError if training fails.

    >>> settings = {"algorithm.K": 2, "model.hidden": 8, "cluster.backend": "loopback"}
    >>> data = "dataset=synthetic dataset.nodes=300 dataset.features=8"
    >>> run = llcg_dist.fit(data, "gcn", "llcg_plus", machines=2, rounds=3, overrides=settings)
    >>> run.summary["num_rounds"]
    3
    """
    named = {"cluster.num_machines": machines, "num_rounds": rounds, "run_dir": run_dir}
    given = {key: value for key, value in named.items() if value is not None} | given_settings(overrides)
    job = [*target_overrides("model", model), *target_overrides("algorithm", algorithm), *overrides_of(given)]
    with _dataset(data, job) as dataset:
        return _train([*dataset, *job])


@contextlib.contextmanager
def _dataset(data: Any, job: list[str]) -> Iterator[list[str]]:
    """The overrides that name the data set. A graph in memory is known by its content while the context is open."""
    named = data_overrides(data)
    if named is not None:
        yield named
        return
    for chosen in (setting.replace("'", "") for setting in job if setting.startswith("dataset=")):
        raise UserError(f"{chosen}: data is a graph already; give data or a data set, not both")
    config = load_config(["dataset=memory", *job]).dataset
    assert isinstance(config, MemoryConfig)
    with in_memory(to_graph(data, config)) as digest:
        yield ["dataset=memory", f"dataset.digest={digest}"]


def _train(overrides: list[str]) -> Run:
    config = load_config(overrides)
    existed = config.run_dir is not None and Path(config.run_dir).exists()
    folder = claim_run_dir(config, choose_run_dir(config))
    if config.run_dir is None:
        config.run_dir = str(folder)
        overrides = [*overrides, *overrides_of({"run_dir": folder})]
    try:
        if config.cluster.backend == Backend.loopback:
            train_here(config)
        else:
            require_importable(config)
            if isinstance(config.dataset, MemoryConfig):  # other processes read its parts, and never the graph itself
                ensure_store(config, say, build_algorithm(config).data_access)
            train_in_processes(overrides)
    except UserError:
        if not existed:
            remove_if_nothing_recorded(folder)
        raise
    return Run(folder, Path(config.partition.root).absolute())
