"""Gradient steps on one graph: the local steps of a machine (lines 4-9 of Algorithm 2) and the server's correction
(lines 12-17) are the same loop, on another graph and with other settings.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from llcg_dist.config.schema import TrainConfig
from llcg_dist.data.views import View
from llcg_dist.sampling.minibatch import BatchStream, Sampler
from llcg_dist.training.flat_vector import contiguous_parameters, statistics_mask
from llcg_dist.training.loss import loss


@dataclass(frozen=True)
class StepSettings:
    """Settings of a trainer's steps; `stream` and `seed` key all its randomness (seeding.py)."""

    stream: int
    seed: int
    batch_size: int
    lr: float
    lr_factor: Callable[[int, int], float] = lambda round_, step: 1.0
    """(round, step within it) -> what `lr` is multiplied with."""
    logit_shift: Tensor | None = None
    """[C] added to the logits in the loss: see loss.calibration."""


class Trainer:
    """Takes optimiser steps from given parameters along mini-batch gradients of one view's training nodes.

    A round is begin_round, then (backward, optimizer_step) for every step. Trainers of one process may take turns
    between any two of these: each keeps its own place in the random numbers.
    """

    def __init__(
        self,
        view: View,
        model: nn.Module,
        sampler: Sampler,
        steps: StepSettings,
        train: TrainConfig,
        device: str = "cpu",
    ) -> None:
        self._model = model.to(device)
        self._parameters = contiguous_parameters(self._model)
        self.statistics = statistics_mask(self._model).cpu()
        """[n] of bool over theta: True where it holds BatchNorm's running statistics."""
        self.num_learned = sum(parameter.numel() for parameter in self._model.parameters())
        self._view, self._sampler, self._settings, self._train, self._device = view, sampler, steps, train, device
        self._logit_shift = None if steps.logit_shift is None else steps.logit_shift.to(device)
        self._optimizer = self._new_optimizer()
        self._prefetched: BatchStream | None = None

    def prefetch(self, round_: int, steps: int) -> None:
        """Draws mini-batches of a round that has not begun, as many of its steps' as fit: see BatchStream.prefetch."""
        self._prefetched = self._batches_of(round_)
        self._prefetched.prefetch(steps)

    def run_steps(self, theta: Tensor, round_: int, steps: int) -> None:
        """`steps` steps from `theta`; `theta()` is where they led, `mean_loss()` that of their batches."""
        self.begin_round(theta, round_)
        for _ in range(steps):
            self.backward()
            self.optimizer_step()

    def begin_round(self, theta: Tensor | None, round_: int) -> None:
        """Starts the steps of a round from `theta`, or (None) from where the last round ended."""
        if theta is not None:
            self._parameters.copy_(theta)
        self._model.train()
        if self._train.optimizer_state == "reset":
            self.reset_optimizer()
        self._round = round_
        prefetched, self._prefetched = self._prefetched, None
        self._batches = prefetched if prefetched and prefetched.round == round_ else self._batches_of(round_)
        torch.manual_seed(self._batches.torch_seed)
        self._torch_rng = torch.get_rng_state()
        self._loss_sum = torch.zeros((), dtype=torch.float64)
        self._backwards = self._steps = 0

    def backward(self) -> None:
        """Forward and backward pass over the next mini-batch; its gradient is then in the parameters' .grad."""
        torch.set_rng_state(self._torch_rng)
        batch = self._batches.next().to(self._device)
        logits = self._model(batch.features, batch.blocks)
        if self._logit_shift is not None:
            logits = logits + self._logit_shift
        value = loss(logits, batch.labels, self._view.task)
        self._optimizer.zero_grad(set_to_none=True)
        value.backward()
        self._torch_rng = torch.get_rng_state()
        self._loss_sum += value.detach().cpu()
        self._backwards += 1

    def optimizer_step(self) -> None:
        """One step of the optimiser along the parameters' .grad, with the learning rate of its place in the run."""
        for group in self._optimizer.param_groups:
            group["lr"] = self._settings.lr * self._settings.lr_factor(self._round, self._steps)
        self._steps += 1
        self._optimizer.step()

    def flat_gradient(self) -> Tensor:
        """[number of parameters] on the CPU: the gradient of the last backward pass."""
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in self._model.parameters()]
        return torch.cat([part.reshape(-1).cpu() for part in parts])

    def set_gradient(self, flat: Tensor) -> None:
        """Puts this gradient in the place of the last backward pass's."""
        parameters = list(self._model.parameters())
        for parameter, values in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
            parameter.grad = values.view_as(parameter).to(self._device)

    def theta(self) -> Tensor:
        """The parameters as they are now, on the CPU; not a copy: to be used before the next step."""
        return self._parameters.cpu()

    def mean_loss(self) -> float | None:
        """Of the batches since begin_round; None before the first."""
        return self._loss_sum.item() / self._backwards if self._backwards else None

    def optimizer_state(self) -> dict[str, Any]:
        """All that a round leaves behind besides the parameters: what a checkpoint needs."""
        return self._optimizer.state_dict()

    def load_optimizer_state(self, state: dict[str, Any]) -> None:
        self._optimizer.load_state_dict(state)

    def reset_optimizer(self) -> None:
        self._optimizer = self._new_optimizer()

    def _batches_of(self, round_: int) -> BatchStream:
        settings = self._settings
        return BatchStream(self._view, self._sampler, settings.batch_size, settings.seed, settings.stream, round_)

    def _new_optimizer(self) -> torch.optim.Optimizer:
        kind = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[self._train.optimizer]
        parameters = self._model.parameters()
        return kind(parameters, lr=self._settings.lr, weight_decay=self._train.weight_decay, fused=True)
