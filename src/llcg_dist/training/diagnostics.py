"""Measures the quantities of the paper's theorems (training/theory.py) at the model that a round starts from.

Diagnostics have their own copies of the model and their own random streams, so that they change no result of training.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from llcg_dist import seeding
from llcg_dist.config.schema import Config
from llcg_dist.data.cut import correction_nodes
from llcg_dist.data.derived import DataAccess, part_and_halo_nodes
from llcg_dist.data.graph import TRAIN, Graph
from llcg_dist.data.rows import Array
from llcg_dist.data.views import GraphView, SubgraphView, View
from llcg_dist.models import build_model
from llcg_dist.models.samplers import all_neighbours_sampler, sampler_for
from llcg_dist.sampling.minibatch import Sampler
from llcg_dist.training import theory
from llcg_dist.training.flat_vector import load_flat, statistics_mask


class LocalGradient:
    """A machine's part of the diagnostics: the full-batch gradient over its training nodes.

    It takes all the neighbours that the machine holds, without sampling.
    """

    def __init__(self, config: Config, view: View, device: str = "cpu") -> None:
        self._model = build_model(config.model, view.num_features, view.num_classes).to(device)
        self._view, self._chunk, self._device = view, config.diagnostics.chunk, device
        self._sampler = all_neighbours_sampler(self._model, view.topology)

    def at(self, theta: Tensor) -> Tensor:
        """The gradient at the model `theta`: [number of learned parameters] float32, which is sent to the server."""
        load_flat(self._model, theta)
        nodes, device = self._view.train_nodes, self._device
        return theory.full_gradient(self._model, self._view, self._sampler, nodes, self._chunk, device).float()


class Diagnostics:
    """The server's part of the diagnostics: all quantities, given every machine's local gradient."""

    def __init__(
        self,
        config: Config,
        access: DataAccess,
        graph: Graph,
        assignment: Array,
        device: str = "cpu",
    ) -> None:
        """`access`: what the method's machines may read. `assignment` [N]: the part of each node."""
        self._config, self._access, self._graph, self._assignment = config, access, graph, assignment
        self._device = device
        self._model = build_model(config.model, graph.num_features, graph.num_classes).to(device)
        self._learned = ~statistics_mask(self._model)
        self._view = GraphView(graph)
        self._all_neighbours = all_neighbours_sampler(self._model, self._view.topology)
        chosen = correction_nodes(config.sampling.server_minibatch, graph, assignment)
        self._correction_nodes = self._view.train_nodes if chosen is None else chosen

    def measure(
        self, theta: Tensor, round_: int, local_gradients: Sequence[Tensor], steps: Sequence[int]
    ) -> dict[str, Any]:
        """Columns of the round's row in metrics.jsonl.

        `local_gradients`: every machine's gradient at the model `theta`, in part order. `steps`: local steps of every
        round of the run.
        """
        started = time.perf_counter()
        load_flat(self._model, theta)
        local = [gradient.double() for gradient in local_gradients]
        is_train = self._graph.split == TRAIN
        nodes = [(is_train & (self._assignment == part)).nonzero()[0] for part in range(len(local))]
        full = [self._full_gradient(part_nodes) for part_nodes in nodes]
        total = sum(len(part_nodes) for part_nodes in nodes)
        grad = sum((g * (len(n) / total) for g, n in zip(full, nodes, strict=True)), torch.zeros_like(full[0]))
        kappa_a = theory.max_squared_distance(local, full)
        kappa_x = theory.max_squared_distance(full, [grad] * len(full))
        bias, variance = self._local_sampling_error(local, round_)
        row: dict[str, Any] = {
            "kappa_a_sq": kappa_a,
            "kappa_x_sq": kappa_x,
            "kappa_sq": kappa_a + kappa_x,
            "g_local": theory.squared_norm_of_mean(local),
            "g_global": theory.squared_norm_of_mean([grad]),
        }
        estimates = {
            "sigma_bias_sq": bias,
            "sigma_var_sq": variance,
            "sigma_global_sq": self._server_sampling_error(grad, round_),
            "lipschitz": self._smoothness(theta, round_),
        }
        for name, (value, error) in estimates.items():
            row |= {name: value, f"{name}_error": error}
        row |= self._theorems(row, len(local), steps, round_)
        return row | {"seconds_diagnostics": time.perf_counter() - started}

    def _full_gradient(self, nodes: Array) -> Tensor:
        """The exact gradient of the mean loss over `nodes`, with all their neighbours in the full graph."""
        chunk = self._config.diagnostics.chunk
        return theory.full_gradient(self._model, self._view, self._all_neighbours, nodes, chunk, self._device)

    def _local_sampling_error(self, local: Sequence[Tensor], round_: int) -> tuple[tuple[float, float], ...]:
        """The largest σ_bias² and the largest σ_var² of any part's local mini-batches, each with its error."""
        config, biases, variances = self._config, [], []
        for part, exact in enumerate(local):
            own, remote = part_and_halo_nodes(config, self._access, self._graph, self._assignment, part)
            view = SubgraphView(self._graph, np.concatenate([own, remote]), len(own))
            sampler = sampler_for(self._model, view.topology, config.sampling.fanout, config.sampling.method)
            size, stream = config.train.local_batch_size, seeding.part_stream(part)
            samples = self._sample_gradients(view, view.train_nodes, sampler, size, stream, round_)
            biases.append(samples.bias(exact))
            variances.append(samples.variance())
        return max(biases), max(variances)

    def _server_sampling_error(self, grad: Tensor, round_: int) -> tuple[float, float]:
        """σ_global² of the server's correction batches around the full gradient `grad`, with its error."""
        config = self._config
        sampler = sampler_for(self._model, self._view.topology, config.sampling.server_fanout)
        size = config.train.server_batch_size
        stream = seeding.SERVER_STREAM
        samples = self._sample_gradients(self._view, self._correction_nodes, sampler, size, stream, round_)
        return samples.mean_square(grad)

    def _sample_gradients(
        self, view: View, nodes: Array, sampler: Sampler, batch_size: int, stream: int, round_: int
    ) -> theory.GradientSamples:
        def gradient(batch: Array, seed: int) -> Tensor:
            return theory.batch_gradient(self._model, view, sampler, batch, seed, self._device)

        rng = seeding.diagnostics_generator(self._config.seed, stream, round_)
        return theory.sample_gradients(gradient, nodes, batch_size, self._config.diagnostics.repeats, rng)

    def _smoothness(self, theta: Tensor, round_: int) -> tuple[float, float]:
        """L of the full training loss near `theta`, and the last power iteration's change of it."""

        def gradient_at(point: Tensor) -> Tensor:
            load_flat(self._model, theta.masked_scatter(self._learned, point.float()))
            return self._full_gradient(self._view.train_nodes)

        rng = seeding.diagnostics_generator(self._config.seed, seeding.INITIAL_WEIGHTS_STREAM, round_)
        point, steps = theta[self._learned].double(), self._config.diagnostics.hessian_steps
        return theory.smoothness(gradient_at, point, steps, rng)

    def _theorems(self, row: dict[str, Any], machines: int, steps: Sequence[int], round_: int) -> dict[str, Any]:
        """Theorem 1's K and Theorem 2's S for the quantities in `row`; a note where the formulas do not apply."""
        corrections = self._config.algorithm.fixed_correction_steps
        total = sum(steps) + corrections * len(steps)
        smoothness = row["lipschitz"]
        correction_steps = theory.theorem2_steps(
            row["kappa_sq"],
            row["sigma_bias_sq"],
            smoothness,
            machines,
            total,
            row["g_local"],
            row["g_global"],
            steps[round_ - 1],
        )
        columns: dict[str, Any] = {
            "theorem1_K": theory.theorem1_bound(smoothness, machines, total),
            "theorem2_S": correction_steps,
        }
        if correction_steps is None:
            short = f"T = {total} steps, and the theorems want more than L²P = {smoothness**2 * machines:.3g}"
            columns["theorem_note"] = f"the formulas do not apply: {short}"
        return columns
