"""`llcg predict`: class and probability of every node of a run's graph, or of a new one with the same features."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from llcg_dist.config.compose import load_config
from llcg_dist.config.recorded import read_config
from llcg_dist.config.schema import Config
from llcg_dist.data.atomic_files import staged_file
from llcg_dist.data.datasets import load_to_predict
from llcg_dist.data.graph import UNUSED, Graph
from llcg_dist.data.partition import ensure_store
from llcg_dist.data.rows import Array
from llcg_dist.data.store import read_shard
from llcg_dist.data.whole_graph import given_rows
from llcg_dist.errors import UserError, one_line
from llcg_dist.models import build_model
from llcg_dist.models.rules import check_model
from llcg_dist.records.classes import CLASSES_FILE, SHOWN_CLASSES, class_table, write_class_results
from llcg_dist.records.console import table
from llcg_dist.training.class_scores import class_results
from llcg_dist.training.full_forward import full_forward
from llcg_dist.training.hidden_states import HiddenStates
from llcg_dist.training.predictions import most_probable

_MODEL_FILES = {"best": "best.pt", "final": "model.pt"}
_LOCATION_KEYS = ("partition.root", "dataset.root")


def predict(arguments: Sequence[str], say: Callable[[str], None] = lambda line: None) -> Path:
    """Runs `llcg predict` with these key=value arguments; returns the file that was written."""
    request = _Request(arguments)
    run = TrainedModel(request.run_dir, request.which, request.locations, say)
    graph = run.trained
    if request.new_graph:
        new = load_config(request.new_graph).dataset
        say(f"loading dataset {new.name}")
        graph = run.with_same_features(load_to_predict(new, run.trained), new.described)
    say(f"predicting {graph.num_nodes:,} nodes with {run.file}")
    logits = run.logits(graph)
    if request.replaces_others():
        say(f"{request.out}: the predictions that are there are replaced; out=FILE writes to another file")
    _write(run.in_given_order(prediction_table(logits, graph, run.trained), graph), request.out)
    if graph is run.trained or (graph.split != UNUSED).any():
        _report_classes(class_results(logits, graph), request, say)
    return request.out


class TrainedModel:
    """A model that a run has saved, and the graph that it was trained on."""

    def __init__(
        self,
        run_dir: Path,
        which: str = "best",
        locations: Mapping[str, str] | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`which`: best or final. `locations`: where the run's parts lie now, by setting."""
        if which not in _MODEL_FILES:
            raise UserError(f"which={which}: must be best or final")
        self._run_dir, self.file = run_dir, run_dir / _MODEL_FILES[which]
        self._config = read_run_config(run_dir, locations)
        store, _ = ensure_store(self._config, say)
        shard = read_shard(store / "global", self._config.verify)
        self.trained, self._order = shard.graph, shard.extra.get("order")
        self.model = build_model(self._config.model, self.trained.num_features, self.trained.num_classes)
        _load_state(self.model, self.file)

    def logits(self, graph: Graph, nodes: Array | None = None) -> Tensor:
        """[N, C] of every node of a graph; with a mask `nodes` [N], rows outside of it are undefined."""
        evaluate = self._config.evaluate
        return full_forward(graph, self.model, evaluate.chunk, HiddenStates.of(evaluate), nodes).logits()

    def order_of(self, graph: Graph) -> Array | None:
        """[N] the place that every node of the graph has in the user's data; None where that is its own (see
        partition.order)."""
        return self._order if graph is self.trained else None

    def in_given_order(self, predictions: pd.DataFrame, graph: Graph) -> pd.DataFrame:
        """A table with a row per node of the graph, in the order of the user's data."""
        order = self.order_of(graph)
        return predictions if order is None else predictions.iloc[given_rows(order)].reset_index(drop=True)

    def with_same_features(self, graph: Graph, source: str) -> Graph:
        """The graph; UserError, with `source` as its subject, where its features are not those of training."""
        _require_same_features(graph, self.trained, source, self._run_dir)
        return graph


def _report_classes(results: dict[str, Any], request: "_Request", say: Callable[[str], None]) -> None:
    """Writes the scores of every class beside the predictions, and says those of the test nodes (else validation).

    A run of a version that wrote no classes.json gets its own, too.
    """
    results = {"model": request.which} | results
    beside = request.out.with_name(f"{request.out.stem}_classes.json")
    recorded = request.run_dir / CLASSES_FILE
    try:
        write_class_results(beside, results)
        if request.which == "best" and not request.new_graph and not recorded.exists():
            write_class_results(recorded, results)
    except OSError as error:
        raise UserError(f"{beside}: cannot be written ({error})") from None
    split = "test" if results["test"] else "val"
    if scores := results[split]:
        say(f"{request.scored_nodes or split} nodes of each class" + _shown(len(scores["classes"])))
        say(table(*class_table(scores)))
        say(f"all classes{', with the confusion matrix,' if 'confusion' in scores else ''} in {beside}")


def _shown(number: int) -> str:
    return f", the {SHOWN_CLASSES} most frequent of {number}" if number > SHOWN_CLASSES else ""


def read_run_config(run_dir: Path, locations: Mapping[str, str] | None = None) -> Config:
    """The settings in a run's config.yaml, checked as those of a new job; `locations` replace its paths."""
    path = run_dir / "config.yaml"
    if not path.is_file():
        raise UserError(f"run_dir={run_dir}: no file {path}; name the folder of a finished run")
    config = read_config(path, locations)
    try:
        check_model(config)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return config


def prediction_table(logits: Tensor, graph: Graph, trained: Graph) -> pd.DataFrame:
    """A row per node of `graph` from logits [N, C]; class names and task are those of the training graph, `trained`."""
    classes = trained.names.get("class", np.arange(trained.num_classes))
    columns: dict[str, Any] = {"node": graph.names.get("node", np.arange(graph.num_nodes))}
    if trained.task == "multiclass":
        best, probability = (found.numpy() for found in most_probable(logits))
        columns |= {"class": classes[best], "probability": probability}
    else:
        of_labels = logits.sigmoid().numpy()
        columns["class"] = [";".join(classes[row].astype(str)) for row in of_labels > 0.5]
        columns |= {f"probability_{name}": of_labels[:, i] for i, name in enumerate(classes)}
    return pd.DataFrame(columns)


class _Request:
    """The parsed key=value arguments of `llcg predict`."""

    def __init__(self, arguments: Sequence[str]) -> None:
        settings = dict(_pair(argument) for argument in arguments)
        if not settings.get("run_dir"):
            raise UserError("run_dir: must name the folder of a finished run (llcg predict --help)")
        self.run_dir = Path(settings.pop("run_dir"))
        self.which = settings.pop("which", "best")
        self._out_given = "out" in settings
        self.out = Path(settings.pop("out", self.run_dir / "predictions.csv"))
        if self.out.suffix not in (".csv", ".parquet"):
            raise UserError(f"out={self.out}: must end in .csv or .parquet")
        self.new_graph: list[str] = []
        if "dataset" in settings:
            dataset_keys = [key for key in settings if key == "dataset" or key.startswith("dataset.")]
            self.new_graph = [f"{key}={settings.pop(key)}" for key in dataset_keys]
        has_split = any("split" in setting or "mask" in setting for setting in self.new_graph)
        self.scored_nodes = "labelled" if self.new_graph and not has_split else ""
        """What is said of the nodes that have class results, where they are not those of a split."""
        self.locations = {key: settings.pop(key) for key in _LOCATION_KEYS if key in settings}
        if settings:
            raise UserError(f"{next(iter(settings))}: not a setting of llcg predict (llcg predict --help)")

    def replaces_others(self) -> bool:
        """Whether predictions of a new graph go where those of the run's own graph may be, which nobody asked for."""
        return bool(self.new_graph) and not self._out_given and self.out.exists()


def _pair(argument: str) -> tuple[str, str]:
    """Splits key=value."""
    key, equals, value = argument.partition("=")
    if not equals:
        raise UserError(f"{argument}: settings of llcg predict are written key=value")
    return key, value


def _load_state(model: torch.nn.Module, path: Path) -> None:
    """Loads a state_dict; raises UserError for a missing or damaged file, or one of another model."""
    if not path.is_file():
        advice = "use which=final (best needs validation nodes)" if path.name == "best.pt" else "the run has not ended"
        raise UserError(f"{path}: no such file; {advice}")
    try:
        model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # a damaged archive raises almost anything
        raise UserError(f"{path}: not a state_dict of the model in config.yaml ({one_line(error)[:200]})") from None


def _require_same_features(graph: Graph, trained: Graph, source: str, run_dir: Path) -> None:
    if graph.num_features != trained.num_features:
        widths = f"{graph.num_features} features a node, the model in {run_dir} was trained with {trained.num_features}"
        raise UserError(f"{source}: {widths}; the columns must be the same")
    names, trained_names = graph.names.get("feature"), trained.names.get("feature")
    if names is not None and trained_names is not None and (names != trained_names).any():
        i = int(np.argmax(names != trained_names))
        trained_with = f"the model in {run_dir} was trained with {str(trained_names[i])!r} in that place"
        raise UserError(f"{source}: feature column {i + 1} is {str(names[i])!r}, {trained_with}")


def _write(predictions: pd.DataFrame, out: Path) -> None:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with staged_file(out) as stage:
            if out.suffix == ".csv":
                predictions.to_csv(stage, index=False, float_format="%.6g")
            else:
                predictions.to_parquet(stage, index=False)
    except OSError as error:
        raise UserError(f"out={out}: cannot be written ({error})") from None
