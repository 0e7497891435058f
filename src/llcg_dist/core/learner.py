"""Gradient steps on one graph: a machine's local steps (lines 4-9 of Algorithm 2) and the server's correction
(lines 12-17) are the same walk, on another graph and with settings of their own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from llcg_dist.config.schema import TrainConfig
from llcg_dist.core.batches import Batches, Sampler
from llcg_dist.core.objective import loss
from llcg_dist.core.parameters import gathered
from llcg_dist.data.views import View


@dataclass(frozen=True)
class Walker:
    """Who walks, and how far a step goes; `who` and `seed` key all randomness."""

    who: int
    seed: int
    batch_size: int
    lr: float
    lr_factor: Callable[[int, int], float] = lambda round_, step: 1.0
    """(round, step within it) -> what `lr` is multiplied with."""
    logit_shift: Tensor | None = None
    """[C] added to the logits in the loss: see objective.calibration."""


class Learner:
    """Walks from given parameters along mini-batch gradients of one view's training nodes.

    A walk is begin, then (gradient, advance) for every step. Learners may take turns between any two of these: each
    keeps its own place in the random numbers.
    """

    def __init__(
        self, view: View, model: nn.Module, sampler: Sampler, walker: Walker, train: TrainConfig, device: str = "cpu"
    ) -> None:
        self._model = model.to(device)
        self._here = gathered(self._model)
        self._view, self._sampler, self._walker, self._train, self._device = view, sampler, walker, train, device
        self._shift = None if walker.logit_shift is None else walker.logit_shift.to(device)
        self._optimizer = self._new_optimizer()
        self._drawn_ahead: Batches | None = None

    def draw_ahead(self, round_: int, steps: int) -> None:
        """Draws mini-batches of a walk that has not begun, as many of its steps' as memory is given to: see Batches."""
        self._drawn_ahead = self._batches_of(round_)
        self._drawn_ahead.draw_ahead(steps)

    def walk(self, theta: Tensor, round_: int, steps: int) -> tuple[Tensor, float | None]:
        """`steps` steps from `theta`; returns where they led and the mean loss of their batches."""
        self.begin(theta, round_)
        for _ in range(steps):
            self.gradient()
            self.advance()
        return self.theta().clone(), self.mean_loss()

    def begin(self, theta: Tensor | None, round_: int) -> None:
        """Starts the walk of a round from `theta`, or from where the last one ended."""
        if theta is not None:
            self._here.copy_(theta)
        self._model.train()
        if self._train.optimizer_state == "reset":
            self.reset_optimizer()
        self._round = round_
        ahead, self._drawn_ahead = self._drawn_ahead, None
        self._batches = ahead if ahead and ahead.round == round_ else self._batches_of(round_)
        torch.manual_seed(self._batches.torch_seed)
        self._torch_rng = torch.get_rng_state()
        self._losses = torch.zeros((), dtype=torch.float64)
        self._steps = self._advanced = 0

    def gradient(self) -> None:
        """Computes the gradient of the next mini-batch."""
        torch.set_rng_state(self._torch_rng)
        batch = self._batches.next()
        inputs = batch.inputs.to(self._device).float()  # a store may hold half precision
        logits = self._model(inputs, [block.to(self._device) for block in batch.blocks])
        if self._shift is not None:
            logits = logits + self._shift
        value = loss(logits, batch.labels.to(self._device), self._view.task)
        self._optimizer.zero_grad(set_to_none=True)
        value.backward()
        self._torch_rng = torch.get_rng_state()
        self._losses += value.detach().cpu()
        self._steps += 1

    def advance(self) -> None:
        """One step of the optimiser along the gradient at hand."""
        for group in self._optimizer.param_groups:
            group["lr"] = self._walker.lr * self._walker.lr_factor(self._round, self._advanced)
        self._advanced += 1
        self._optimizer.step()

    def flat_gradient(self) -> Tensor:
        """[number of parameters] on the CPU: the gradient at hand."""
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in self._model.parameters()]
        return torch.cat([part.reshape(-1).cpu() for part in parts])

    def take_gradient(self, flat: Tensor) -> None:
        """Puts this gradient in the place of the one at hand."""
        parameters = list(self._model.parameters())
        for parameter, values in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
            parameter.grad = values.view_as(parameter).to(self._device)

    def theta(self) -> Tensor:
        """Where the walk is, on the CPU: the model itself, to be used before its next step."""
        return self._here.cpu()

    def mean_loss(self) -> float | None:
        """Of the batches since `begin`."""
        return self._losses.item() / self._steps if self._steps else None

    def optimizer_state(self) -> dict[str, Any]:
        """All that a walk leaves behind besides the parameters."""
        return self._optimizer.state_dict()

    def load_optimizer_state(self, state: dict[str, Any]) -> None:
        self._optimizer.load_state_dict(state)

    def reset_optimizer(self) -> None:
        self._optimizer = self._new_optimizer()

    def _batches_of(self, round_: int) -> Batches:
        walker = self._walker
        return Batches(self._view, self._sampler, walker.batch_size, walker.seed, walker.who, round_)

    def _new_optimizer(self) -> torch.optim.Optimizer:
        kind = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[self._train.optimizer]
        parameters = self._model.parameters()
        return kind(parameters, lr=self._walker.lr, weight_decay=self._train.weight_decay, fused=True)
