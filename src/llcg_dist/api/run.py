"""A run that has been trained: its records, its model, its predictions and its report."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from llcg_dist.api.settings import data_overrides
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.data.datasets import load_to_predict
from llcg_dist.data.datasets.object_fields import as_array
from llcg_dist.data.datasets.objects import to_unlabelled_graph
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array
from llcg_dist.data.whole_graph import given_rows
from llcg_dist.errors import UserError
from llcg_dist.models import plain_module
from llcg_dist.predict import TrainedModel, prediction_table, read_run_config
from llcg_dist.records.reading import read_object, readable_rows
from llcg_dist.report import write_report


def load(run_dir: str | Path, partition_root: str | Path | None = None) -> "Run":
    """Opens a run on disk, trained by `fit` or on the command line.

    run_dir         folder of the run
    partition_root  folder of the run's parts, if they were moved

    >>> settings = {"algorithm.K": 1, "model.hidden": 8, "cluster.backend": "loopback", "run_dir": "runs/first"}
    >>> run = llcg_dist.fit("dataset=synthetic dataset.nodes=200", machines=2, rounds=2, overrides=settings)
    >>> again = llcg_dist.load("runs/first")
    >>> again.summary == run.summary
    True
    """
    run = Run(run_dir, partition_root)
    run.config  # noqa: B018 - raises where there is no run
    return run


class Run:
    """A run on disk: its settings, records, model, predictions and report.

    >>> settings = {"algorithm.K": 1, "model.hidden": 8, "cluster.backend": "loopback"}
    >>> run = llcg_dist.fit("dataset=synthetic dataset.nodes=200", machines=2, rounds=2, overrides=settings)
    >>> run.history["round"].tolist()
    [1, 2]
    >>> run.predict(nodes=[5, 3]).columns.tolist()
    ['node', 'class', 'probability']
    """

    def __init__(self, run_dir: str | Path, partition_root: str | Path | None = None) -> None:
        self.path = Path(run_dir).absolute()
        self._locations = {"partition.root": str(partition_root)} if partition_root is not None else {}

    def __repr__(self) -> str:
        return f"llcg_dist.load({str(self.path)!r})"

    @property
    def config(self) -> Config:
        """The settings of the run."""
        return read_run_config(self.path, self._locations)

    @property
    def summary(self) -> dict[str, Any]:
        """The content of summary.json: scores, bytes and seconds of the whole run."""
        summary = read_object(self.path / "summary.json")
        if summary is None:
            rule = "has no summary: the run is not finished; call fit with this run_dir to go on"
            raise UserError(f"run_dir={self.path}: {rule}")
        return summary

    @property
    def history(self) -> pd.DataFrame:
        """The content of metrics.jsonl, with one row per round."""
        return pd.DataFrame(readable_rows(self.path))

    def model(self, which: str = "best") -> nn.Module:
        """A copy of the model in eval mode, with the weights of the best validation score.

        With which="final", the weights are those of the last round. The model is called with x [N, F] and
        edge_index [2, M] and returns logits [N, C]. If you trained your own model, the result is an instance of your
        class; give it every edge in both directions and no self-loops, as in training.
        """
        return plain_module(self._trained(which).model).eval()

    def predict(self, data: Any = None, nodes: Any = None, which: str = "best") -> pd.DataFrame:
        """Predicts the class of every node and its probability, as `llcg predict` does.

        data   a new graph, in any form that fit accepts; it needs no labels. Default: the training graph
        nodes  nodes to predict, as values of the column `node`, in this order, or a mask. Default: all
        which  "best" (weights of the best validation score) or "final" (weights of the last round)
        """
        run = self._trained(which)
        graph = run.trained if data is None else run.with_same_features(*_new_graph(data, run.trained))
        rows = None if nodes is None else _rows(graph, nodes, run.order_of(graph))
        wanted = None if rows is None else np.isin(np.arange(graph.num_nodes), rows)
        none = wanted is not None and not wanted.any()  # the table has its columns all the same
        shape = graph.num_nodes, run.trained.num_classes
        logits = torch.zeros(1, 1).expand(shape) if none else run.logits(graph, wanted)
        table = prediction_table(logits, graph, run.trained)
        if rows is None:
            return run.in_given_order(table, graph)
        return table.iloc[rows].reset_index(drop=True)

    def report(self) -> Path:
        """Writes the report of this run, as `llcg report` does, and returns the path of the HTML page."""
        return write_report([self.path])[0]

    def _trained(self, which: str) -> TrainedModel:
        return TrainedModel(self.path, which, self._locations)


def _new_graph(data: Any, trained: Graph) -> tuple[Graph, str]:
    """(graph, subject of messages about it)."""
    settings = data_overrides(data)
    if settings is None:
        return to_unlabelled_graph(data, "data"), "data"
    config = load_config(settings).dataset
    return load_to_predict(config, trained), config.described


def _rows(graph: Graph, nodes: Any, order: Array | None) -> Array:
    """The rows of these nodes, given by their names or numbers, or by a mask. `order`: see TrainedModel.order_of."""
    wanted = np.atleast_1d(as_array(nodes))
    if wanted.dtype == bool and wanted.shape == (graph.num_nodes,):
        return np.flatnonzero(wanted) if order is None else given_rows(order)[wanted]
    if wanted.dtype == bool or wanted.ndim != 1:
        rule = f"must be a list of nodes, or a mask [{graph.num_nodes}]"
        raise UserError(f"nodes: {rule}, not {wanted.dtype}{list(wanted.shape)}")
    names = pd.Index(graph.names.get("node", np.arange(graph.num_nodes)))
    rows: Array = names.get_indexer(pd.Index(wanted))
    if (rows < 0).any():
        raise UserError(f"nodes: {wanted[rows < 0].tolist()[0]!r} is not a node of this graph of {graph.num_nodes}")
    return rows
