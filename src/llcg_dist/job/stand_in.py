"""The server in the place of machines that are gone: their local steps, over the full graph (cluster.stand_in)."""

from dataclasses import replace

import numpy as np

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.comm.messages import Message, Trained
from llcg_dist.config.train import OptimizerState
from llcg_dist.data.graph import TRAIN
from llcg_dist.data.views import GraphView
from llcg_dist.job.machine_factory import OpenPart, part_trainer
from llcg_dist.job.open_run import OpenRun
from llcg_dist.job.start import Start, checkpoint_folder
from llcg_dist.training.trainer import Trainer


class StandIn:
    """Takes a part's local steps: mini-batches of its training nodes with their neighbours in the full graph.

    They share the time that one machine's steps take. Between rounds it remembers nothing (the optimiser begins anew,
    models and methods of the user's own are built anew), so that a run that is resumed or replayed has the same bits.
    """

    def __init__(self, run: OpenRun, start: Start) -> None:
        self._run, self._start = run, start
        self._trainers: dict[int, Trainer] = {}
        algorithm, model = run.config.algorithm, run.config.model
        self._builds_anew = bool(model.target or algorithm.target)
        """Models and methods of the user's own may remember anything."""

    def __call__(self, part: int, request: Message, absent: int) -> Message:
        """The model that the steps lead to from the request's, where so many parts are stood in for."""
        if part not in self._trainers or self._builds_anew:
            self._trainers[part] = self._trainer(part)
        trainer, steps = self._trainers[part], self._start.local_steps(self._run.algorithm, part)
        trainer.run_steps(request.vector, request.round, max(1, steps[request.round - 1] // absent))
        return Trained(request.round, trainer.theta(), part=part)

    def _trainer(self, part: int) -> Trainer:
        run, graph = self._run, self._run.full.graph
        assert run.assignment is not None
        nodes = np.flatnonzero((run.assignment == part) & (graph.split == TRAIN))
        forgetful = replace(run.config, train=replace(run.config.train, optimizer_state=OptimizerState.reset))
        folder = checkpoint_folder(run.config, run.run_dir)
        method = build_algorithm(run.config)  # the server's own must not notice
        opened = OpenPart(forgetful, method, part, GraphView(graph, nodes), folder, run.device)
        return part_trainer(opened, self._start, run.new_model(), self._start.local_steps(run.algorithm, part))
