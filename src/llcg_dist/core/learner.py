"""Gradient steps on one graph: a machine's local steps (lines 4-9 of Algorithm 2) and the server's correction
(lines 12-17) are the same walk, on another graph and with settings of their own.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from llcg_dist import seeding
from llcg_dist.core.objective import loss
from llcg_dist.core.parameters import flatten, load_flat
from llcg_dist.data.graph import TRAIN, Array, Graph
from llcg_dist.schema import TrainConfig


class Sampler(Protocol):
    def sample(self, seeds: Array, seed: int) -> Any: ...


@dataclass(frozen=True)
class Walker:
    """Who walks, and how far a step goes; `who` and `seed` key all randomness."""

    who: int
    seed: int
    batch_size: int
    lr: float


class Learner:
    """Walks from given parameters along mini-batch gradients of one graph's training nodes."""

    def __init__(
        self, graph: Graph, model: nn.Module, sampler: Sampler, walker: Walker, train: TrainConfig, device: str = "cpu"
    ) -> None:
        self._model = model.to(device)
        self._sampler, self._walker, self._train, self._device = sampler, walker, train, device
        self._task = graph.task
        self._features, self._labels = torch.from_numpy(graph.features), torch.from_numpy(graph.labels)
        self._train_nodes = graph.nodes_in(TRAIN)
        self._optimizer = self._new_optimizer()

    def walk(self, theta: Tensor, round_: int, steps: int) -> tuple[Tensor, float | None]:
        """`steps` steps from `theta`; returns where they led and the mean loss of their batches."""
        load_flat(self._model, theta)
        self._model.train()
        if self._train.optimizer_state == "reset":
            self.reset_optimizer()
        rng = seeding.generator(self._walker.seed, self._walker.who, round_)
        seeding.seed_torch(rng)
        total = torch.zeros((), dtype=torch.float64)
        for _ in range(steps):
            total += self._step(rng).detach()
        return flatten(self._model), total.item() / steps if steps else None

    def optimizer_state(self) -> dict[str, Any]:
        """All that a walk leaves behind besides the parameters."""
        return self._optimizer.state_dict()

    def load_optimizer_state(self, state: dict[str, Any]) -> None:
        self._optimizer.load_state_dict(state)

    def reset_optimizer(self) -> None:
        self._optimizer = self._new_optimizer()

    def _step(self, rng: Any) -> Tensor:
        size = min(self._walker.batch_size, len(self._train_nodes))
        seeds = rng.choice(self._train_nodes, size, replace=False)
        batch = self._sampler.sample(seeds, seed=int(rng.integers(2**31)))
        inputs = self._features[batch.inputs].to(self._device).float()  # a store may hold half precision
        logits = self._model(inputs, [block.to(self._device) for block in batch.blocks])
        value = loss(logits, self._labels[batch.outputs].to(self._device), self._task)
        self._optimizer.zero_grad(set_to_none=True)
        value.backward()
        self._optimizer.step()
        return value

    def _new_optimizer(self) -> torch.optim.Optimizer:
        kind = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[self._train.optimizer]
        parameters = self._model.parameters()
        return kind(parameters, lr=self._walker.lr, weight_decay=self._train.weight_decay)
