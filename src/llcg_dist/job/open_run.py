"""A run as the server has opened it: its settings, its graph, and where its files are."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.config.schema import Config
from llcg_dist.data.cut import correction_nodes
from llcg_dist.data.graph import TRAIN
from llcg_dist.data.rows import Array
from llcg_dist.data.store import Shard
from llcg_dist.data.views import GraphView
from llcg_dist.job.checkpoint import SERVER_OWNER, CheckpointFiles, explain_misfit
from llcg_dist.job.devices import place_features
from llcg_dist.job.evaluation_process import EvaluationProcess
from llcg_dist.job.initial_weights import InitialWeights, read_initial_weights
from llcg_dist.job.mirrored_files import open_files
from llcg_dist.job.start import checkpoint_folder
from llcg_dist.models import build_model
from llcg_dist.models.base import Model
from llcg_dist.records.mirror import RecordsMirror
from llcg_dist.records.rows import silent_parts


@dataclass(frozen=True)
class OpenRun:
    """A run as the server has opened it."""

    config: Config
    algorithm: Algorithm
    run_dir: Path
    store: Path
    manifest: dict[str, Any]
    full: Shard
    """The full graph."""
    device: str
    restored: list[str] = field(default_factory=list)
    """Records that were copied from checkpoint.mirror."""
    evaluation_process: EvaluationProcess | None = None
    """Where models are evaluated, if not in the server's own process."""

    @cached_property
    def records_mirror(self) -> RecordsMirror | None:
        mirror = self.config.checkpoint.mirror
        return RecordsMirror(Path(mirror)) if mirror else None

    @cached_property
    def checkpoints(self) -> CheckpointFiles:
        folder = checkpoint_folder(self.config, self.run_dir)
        return open_files(folder, self.config.checkpoint.mirror, SERVER_OWNER, self.records_mirror)

    def absent_in(self, round_: int) -> list[int]:
        """Parts whose machines were gone, or late, in a round that the server has a checkpoint of."""
        with explain_misfit(SERVER_OWNER, round_):
            return silent_parts(self.checkpoints.load(round_)["result"]["notes"])

    @property
    def train_nodes(self) -> list[int]:
        """Training nodes of every machine."""
        if self.algorithm.trains_on_parts:
            return [part["train_nodes"] for part in self.manifest["parts"]]
        return [len(self.full.graph.nodes_in(TRAIN))] * self.algorithm.num_machines

    @property
    def assignment(self) -> Array | None:
        """The part of every node, where there are parts."""
        return self.full.extra["assignment"] if self.algorithm.trains_on_parts else None

    @cached_property
    def correction_view(self) -> GraphView:
        """What the server's own steps read: its features are on the device where they fit."""
        sampling, graph = self.config.sampling, self.full.graph
        nodes = correction_nodes(sampling.server_minibatch, graph, self.full.extra["assignment"])
        view = GraphView(graph, nodes)
        if self.config.algorithm.draws_at_server:
            place_features(view, sampling.features_on, self.device)
        return view

    @cached_property
    def initial_weights(self) -> InitialWeights | None:
        """Of a warm start; UserError where they do not fit."""
        place = self.config.init_from
        return read_initial_weights(place, self.new_model()) if place else None

    def new_model(self) -> Model:
        return build_model(self.config.model, self.full.graph.num_features, self.full.graph.num_classes)
