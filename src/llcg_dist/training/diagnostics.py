"""Measures the quantities of the paper's theorems at the model that a round starts from (training/theory.py has the
mathematics). Models of its own, random numbers of its own: training does not notice.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from llcg_dist import seeding
from llcg_dist.config.schema import AUTO, Config
from llcg_dist.data.derived import DataAccess, nodes_read
from llcg_dist.data.graph import TRAIN, Graph
from llcg_dist.data.rows import Array
from llcg_dist.data.views import GraphView, SubgraphView, View
from llcg_dist.models import build_model
from llcg_dist.sampling.minibatch import MakeSampler, Sampler, fanouts_per_layer
from llcg_dist.training import theory
from llcg_dist.training.flat_vector import load_flat, statistics_mask


def due(config: Config, round_: int) -> bool:
    every = config.diagnostics.every
    return every > 0 and round_ % every == 0


class LocalGradient:
    """A machine's share: the gradient over all its training nodes with all the neighbours that it knows."""

    def __init__(self, config: Config, view: View, make_sampler: MakeSampler, device: str = "cpu") -> None:
        self._model = build_model(config.model, view.num_features, view.num_classes).to(device)
        self._view, self._chunk, self._device = view, config.diagnostics.chunk, device
        self._sampler = _all_neighbours(view, self._model.depth, make_sampler)

    def at(self, theta: Tensor) -> Tensor:
        """[number of learned parameters] float32: what crosses."""
        load_flat(self._model, theta)
        nodes, device = self._view.train_nodes, self._device
        return theory.full_gradient(self._model, self._view, self._sampler, nodes, self._chunk, device).float()


class Diagnostics:
    """The server's share: everything else."""

    def __init__(
        self,
        config: Config,
        access: DataAccess,
        graph: Graph,
        assignment: Array,
        correction_nodes: Array | None,
        make_sampler: MakeSampler,
        device: str = "cpu",
    ) -> None:
        self._config, self._access, self._graph, self._assignment = config, access, graph, assignment
        self._device, self._make_sampler = device, make_sampler
        self._model = build_model(config.model, graph.num_features, graph.num_classes).to(device)
        self._learned = ~statistics_mask(self._model)
        self._view = GraphView(graph)
        self._whole = _all_neighbours(self._view, self._model.depth, make_sampler)
        self._correction_nodes = self._view.train_nodes if correction_nodes is None else correction_nodes

    def measure(self, theta: Tensor, round_: int, sent: Sequence[Tensor], steps: Sequence[int]) -> dict[str, Any]:
        """Columns of the round's row. `sent`: the machines' gradients at `theta`; `steps`: of every round."""
        started = time.perf_counter()
        load_flat(self._model, theta)
        local = [gradient.double() for gradient in sent]
        trained = self._graph.split == TRAIN
        nodes = [(trained & (self._assignment == part)).nonzero()[0] for part in range(len(local))]
        full = [self._full_gradient(of_part) for of_part in nodes]
        total = sum(len(of_part) for of_part in nodes)
        grad = sum((g * (len(n) / total) for g, n in zip(full, nodes, strict=True)), torch.zeros_like(full[0]))
        kappa_a = theory.largest_square(local, full)
        kappa_x = theory.largest_square(full, [grad] * len(full))
        bias, variance = self._of_local_batches(local, round_)
        everywhere = self._of_server_batches(grad, round_)
        lipschitz = self._smoothness(theta, round_)
        row: dict[str, Any] = {
            "kappa_a_sq": kappa_a,
            "kappa_x_sq": kappa_x,
            "kappa_sq": kappa_a + kappa_x,
            "g_local": theory.square_of_mean(local),
            "g_global": theory.square_of_mean([grad]),
        }
        estimates = {"sigma_bias_sq": bias, "sigma_var_sq": variance, "sigma_global_sq": everywhere}
        for name, (value, error) in (estimates | {"lipschitz": lipschitz}).items():
            row |= {name: value, f"{name}_error": error}
        row |= self._theorems(row, len(local), steps, round_)
        return row | {"seconds_diagnostics": time.perf_counter() - started}

    def _full_gradient(self, nodes: Array) -> Tensor:
        chunk = self._config.diagnostics.chunk
        return theory.full_gradient(self._model, self._view, self._whole, nodes, chunk, self._device)

    def _of_local_batches(self, local: Sequence[Tensor], round_: int) -> tuple[tuple[float, float], ...]:
        """The largest σ_bias² and σ_var² of any part, each with its error."""
        config, biases, variances = self._config, [], []
        fanouts = fanouts_per_layer(config.sampling.fanout, self._model.depth)
        for part, exact in enumerate(local):
            own, remote = nodes_read(config, self._access, self._graph, self._assignment, part)
            view = SubgraphView(self._graph, np.concatenate([own, remote]), len(own))
            sampler, size = (
                self._make_sampler(view.topology, fanouts, config.sampling.method),
                config.train.local_batch_size,
            )
            sampled = self._sampled(view, view.train_nodes, sampler, size, seeding.part_stream(part), round_)
            biases.append(sampled.bias(exact))
            variances.append(sampled.variance())
        return max(biases), max(variances)

    def _of_server_batches(self, grad: Tensor, round_: int) -> tuple[float, float]:
        config = self._config
        fanouts = fanouts_per_layer(config.sampling.server_fanout, self._model.depth)
        sampler, size = self._make_sampler(self._view.topology, fanouts, "neighbor"), config.train.server_batch_size
        sampled = self._sampled(self._view, self._correction_nodes, sampler, size, seeding.SERVER_STREAM, round_)
        return sampled.mean_square(grad)

    def _sampled(
        self, view: View, nodes: Array, sampler: Sampler, batch_size: int, stream: int, round_: int
    ) -> theory.Sampled:
        def gradient(batch: Array, seed: int) -> Tensor:
            return theory.batch_gradient(self._model, view, sampler, batch, seed, self._device)

        rng = seeding.diagnostics_generator(self._config.seed, stream, round_)
        return theory.sample_gradients(gradient, nodes, batch_size, self._config.diagnostics.repeats, rng)

    def _smoothness(self, theta: Tensor, round_: int) -> tuple[float, float]:
        def gradient_at(point: Tensor) -> Tensor:
            load_flat(self._model, theta.masked_scatter(self._learned, point.float()))
            return self._full_gradient(self._view.train_nodes)

        rng = seeding.diagnostics_generator(self._config.seed, seeding.INITIAL_WEIGHTS_STREAM, round_)
        point, steps = theta[self._learned].double(), self._config.diagnostics.hessian_steps
        return theory.smoothness(gradient_at, point, steps, rng)

    def _theorems(self, row: dict[str, Any], machines: int, steps: Sequence[int], round_: int) -> dict[str, Any]:
        corrections = 0 if self._config.algorithm.S == AUTO else self._config.algorithm.S
        total = sum(steps) + corrections * len(steps)
        smooth = row["lipschitz"]
        needed = theory.theorem2_steps(
            row["kappa_sq"],
            row["sigma_bias_sq"],
            smooth,
            machines,
            total,
            row["g_local"],
            row["g_global"],
            steps[round_ - 1],
        )
        found: dict[str, Any] = {"theorem1_K": theory.theorem1_bound(smooth, machines, total), "theorem2_S": needed}
        if needed is None:
            short = f"T = {total} steps, and the theorems want more than L²P = {smooth**2 * machines:.3g}"
            found["theorem_note"] = f"the formulas do not apply: {short}"
        return found


def _all_neighbours(view: View, depth: int, make_sampler: MakeSampler) -> Sampler:
    return make_sampler(view.topology, [-1] * depth, "neighbor")
