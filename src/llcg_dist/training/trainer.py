"""Optimiser steps on one graph: the local steps of a machine (lines 4-9 of Algorithm 2), and the server's correction
steps (lines 12-17), which run the same loop on the full graph and with other settings.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from llcg_dist.config.train import OptimizerState, TrainConfig
from llcg_dist.data import progress
from llcg_dist.data.upload import upload
from llcg_dist.data.views import View
from llcg_dist.models.base import Model
from llcg_dist.sampling.minibatch import Batch, BatchStream, Sampler
from llcg_dist.sampling.upload_ahead import DeviceBatches
from llcg_dist.training.flat_vector import (
    buffers_in_vector,
    contiguous_parameters,
    is_finite,
    keep_in_vector,
    load_buffers,
    other_buffers,
    statistics_mask,
)
from llcg_dist.training.generator_state import generator_state, set_generator_state
from llcg_dist.training.loss import loss
from llcg_dist.training.optimizer import build_optimizer, load_moments, moments
from llcg_dist.training.precision import computing_in


@dataclass(frozen=True)
class StepSettings:
    """Settings of a trainer's steps; `seed`, `stream` and the round key all its random numbers (seeding.py)."""

    stream: int
    seed: int
    batch_size: int
    lr: float
    lr_factor: Callable[[int, int], float] = lambda round_, step: 1.0
    """The learning-rate schedule: (round, step within the round) -> factor on `lr`."""
    logit_shift: Tensor | None = None
    """[C] added to the logits in the loss: the logit adjustment of training/loss.py."""
    change_gradient: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None
    """(gradient, parameters, parameters at the start of the round), all flat, learned and on the model's device -> the
    gradient to use."""
    after_steps: Callable[[Tensor, Tensor], None] | None = None
    """Is told of the same parameters, if they are finite, once a round's steps are done: (now, at its start)."""
    draw_ahead: bool = False
    """Draw the next mini-batch in a second thread while one is used; the same bits either way."""


class Trainer:
    """Takes optimiser steps along mini-batch gradients over one view's training nodes.

    A round is one call of begin_round, then backward and optimizer_step for every step, then end_round. Calls of
    several trainers may alternate in a process: each has its own state of torch's random generator.
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
        self._buffers = buffers_in_vector(self._model)
        self.statistics = statistics_mask(self._model).cpu()
        """[n] of bool over theta: True where it holds BatchNorm's running statistics."""
        self.saved_statistics: Tensor | None = None
        """Running statistics of a checkpoint, for a method whose machines keep their own."""
        self.num_learned = sum(parameter.numel() for parameter in self._model.parameters())
        self.stream = steps.stream
        """Whose random numbers it draws: a part's, or the server's (seeding.py)."""
        self._view, self._sampler, self._settings, self._train, self._device = view, sampler, steps, train, device
        self._logit_shift = None if steps.logit_shift is None else steps.logit_shift.to(device)
        self._optimizer = self._new_optimizer()
        self._prefetched: BatchStream | None = None
        self._loss_sum = torch.zeros((), dtype=torch.float64, device=device)
        self._host_copy: Tensor | None = None
        self._remembers_start = steps.change_gradient is not None or steps.after_steps is not None
        places = (~self.statistics).nonzero().view(-1) if self._remembers_start else torch.empty(0)
        self._learned_places = upload(places, device)
        self._thread = ThreadPoolExecutor(1)  # starts no thread before it is used

    def prefetch(self, round_: int, steps: int) -> None:
        """Draws the mini-batches of a later round's first `steps` steps in advance, or as many of them as fit into
        sampling.minibatch.PREFETCH_BYTES."""
        self._prefetched = self._batches_of(round_)
        self._prefetched.prefetch(steps)

    def run_steps(self, theta: Tensor, round_: int, steps: int) -> None:
        """Takes `steps` steps from `theta` [n]; `theta()` has the parameters they led to, `mean_loss()` their loss."""
        self.begin_round(theta, round_)
        if self._settings.draw_ahead:
            self._batches.draw_ahead(self._thread, steps, self._prepared)
        for step in range(1, steps + 1):
            self.backward()
            self.optimizer_step()
            if step < steps:
                self._on_device.begin_next()
        self.end_round()

    def end_round(self) -> None:
        """After a round's last step. A method is not told of parameters that are not finite: it might keep them."""
        if self._settings.after_steps is not None and is_finite(learned := self._learned()):
            self._settings.after_steps(learned, self._start)

    def _prepared(self, batch: Batch) -> Batch:
        """The batch with what the model can do to it before the step: nothing where it leaves for another device."""
        if self._device != "cpu" or not isinstance(self._model, Model):
            return batch
        here = batch.to(self._device)
        return replace(here, features=self._model.prepared(here.features, here.blocks))

    def begin_round(self, theta: Tensor | None, round_: int) -> None:
        """Starts a round from the parameters `theta` [n]; None: from those at the end of the last round."""
        if theta is not None:
            self._parameters.copy_(theta)
        self._model.train()
        if self._train.optimizer_state == OptimizerState.reset:
            self.reset_optimizer()
        self._round = round_
        prefetched, self._prefetched = self._prefetched, None
        self._batches = prefetched if prefetched and prefetched.round == round_ else self._batches_of(round_)
        self._on_device = DeviceBatches(self._batches, self._device)
        torch.manual_seed(self._batches.torch_seed)
        self._torch_rng = generator_state(self._device)
        self._start = self._learned() if self._remembers_start else torch.empty(0)
        self._loss_sum = torch.zeros((), dtype=torch.float64, device=self._device)
        self._backwards = self._steps = 0
        self._host_copy = None

    def backward(self) -> None:
        """Forward and backward pass over the next mini-batch; its gradient is then in the parameters' .grad."""
        set_generator_state(self._torch_rng, self._device)
        batch = self._on_device.next()
        with computing_in(self._train.precision, self._device):
            logits = self._model(batch.features, batch.blocks).float()
        if self._logit_shift is not None:
            logits = logits + self._logit_shift
        value = loss(logits, batch.labels, self._view.task)
        self._optimizer.zero_grad(set_to_none=True)
        value.backward()
        keep_in_vector(self._buffers)
        if self._settings.change_gradient is not None:
            gradient = self._settings.change_gradient(self._gradient(), self._learned(), self._start)
            self.set_gradient(gradient)
        self._torch_rng = generator_state(self._device)
        self._loss_sum += value.detach()
        self._backwards, self._host_copy = self._backwards + 1, None
        progress.advance()

    def optimizer_step(self) -> None:
        """One optimiser step along the parameters' .grad, with the learning rate that the schedule has for it."""
        for group in self._optimizer.param_groups:
            group["lr"] = self._settings.lr * self._settings.lr_factor(self._round, self._steps)
        self._steps, self._host_copy = self._steps + 1, None
        self._optimizer.step()

    def gradient_at(self, theta: Tensor) -> Tensor:
        """[number of learned parameters] on the CPU: the gradient of the round's next mini-batch at `theta` [n]."""
        self._parameters.copy_(theta)
        self.backward()
        return self.flat_gradient()

    def flat_gradient(self) -> Tensor:
        """[number of learned parameters] on the CPU: the gradient of the last backward pass."""
        return self._gradient().cpu()

    def _gradient(self) -> Tensor:
        """[number of learned parameters] on the model's device: the gradient of the last backward pass."""
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self._model.parameters()]
        return torch.cat([gradient.reshape(-1) for gradient in gradients])

    def set_gradient(self, flat: Tensor) -> None:
        """Replaces the gradient of the last backward pass by a copy of `flat` [number of learned parameters]: an
        optimiser may change it in place."""
        parameters, flat = list(self._model.parameters()), upload(flat, self._device).clone()
        for parameter, values in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
            parameter.grad = values.view_as(parameter)

    def theta(self) -> Tensor:
        """The current parameters [n] on the CPU. Where they are trained there not a copy: they change with the next
        step."""
        return self._on_host()[1]

    def _on_host(self) -> tuple[Tensor, Tensor]:
        """(sum of the losses, parameters [n]) on the CPU: from another device in one copy, once after the last step."""
        if self._parameters.device.type == "cpu":
            return self._loss_sum, self._parameters
        if self._host_copy is None:
            self._host_copy = torch.cat([self._loss_sum.view(1).view(torch.float32), self._parameters]).cpu()
        return self._host_copy[:2].view(torch.float64)[0], self._host_copy[2:]

    def _learned(self) -> Tensor:
        """[number of learned parameters]: a copy of those in theta, where the model is."""
        return self._parameters.index_select(0, self._learned_places)

    def with_saved_statistics(self, theta: Tensor) -> Tensor:
        """`theta` [n] with the running statistics of the checkpoint that the machine goes on from, if there is one."""
        saved, self.saved_statistics = self.saved_statistics, None
        return theta if saved is None else theta.masked_scatter(self.statistics, saved)

    def mean_loss(self) -> float | None:
        """The mean loss of the batches since begin_round; None before the first."""
        return self._on_host()[0].item() / self._backwards if self._backwards else None

    def optimizer_state(self) -> dict[str, Any]:
        """The optimiser's state_dict: all that a checkpoint needs besides the parameters."""
        return self._optimizer.state_dict()

    def load_optimizer_state(self, state: dict[str, Any]) -> None:
        """Restores the optimiser's state_dict of a checkpoint."""
        self._optimizer.load_state_dict(state)

    def moments(self) -> list[Tensor]:
        """What the optimiser keeps, such as Adam's exp_avg, exp_avg_sq and step; nothing where it has no state."""
        return moments(self._optimizer, self._train)

    def load_moments(self, vectors: Sequence[Tensor]) -> None:
        """Takes over what `moments` gave of another trainer of the same model."""
        load_moments(self._optimizer, self._train, vectors)

    def buffers(self) -> dict[str, Tensor]:
        """What the model keeps besides theta, for a checkpoint."""
        return other_buffers(self._model)

    def load_buffers(self, saved: dict[str, Tensor]) -> None:
        load_buffers(self._model, saved)

    def reset_optimizer(self) -> None:
        """Drops the optimiser's moments."""
        self._optimizer = self._new_optimizer()

    def _batches_of(self, round_: int) -> BatchStream:
        """The mini-batches of a round, in their order."""
        settings = self._settings
        key = settings.seed, settings.stream, round_
        return BatchStream(self._view, self._sampler, settings.batch_size, key)

    def _new_optimizer(self) -> torch.optim.Optimizer:
        return build_optimizer(self._model.parameters(), self._train, self._settings.lr)
