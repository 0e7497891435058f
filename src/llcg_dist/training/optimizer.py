"""The optimiser of the settings: adam, sgd, or any class with torch.optim's interface by its dotted path."""

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from llcg_dist.config.targets import resolve
from llcg_dist.config.train import OPTIMIZERS, TrainConfig
from llcg_dist.errors import UserError, one_line

_FUSED = ("cpu", "cuda")
"""Devices for which torch's optimisers have fused kernels."""


def build_optimizer(parameters: Iterable[nn.Parameter], config: TrainConfig, lr: float) -> torch.optim.Optimizer:
    """A new optimiser without state; UserError where the class does not take what it is given."""
    kind = optimizer_class(config)
    accepted = inspect.signature(kind).parameters
    arguments: dict[str, Any] = dict(config.optimizer_options)
    if config.weight_decay or "weight_decay" in accepted:
        arguments.setdefault("weight_decay", config.weight_decay)
    moved = [parameter for parameter in parameters if parameter.requires_grad]
    if config.optimizer in OPTIMIZERS and all(parameter.device.type in _FUSED for parameter in moved):
        arguments.setdefault("fused", True)  # one pass over all parameters
    try:
        optimizer: torch.optim.Optimizer = kind(moved, lr=lr, **arguments)
    except (TypeError, ValueError) as error:
        given = ", ".join(f"{name}={value}" for name, value in arguments.items())
        raise UserError(f"train.optimizer={config.optimizer}: refused {given} ({one_line(error)})") from None
    return optimizer


def state_tensors(config: TrainConfig) -> dict[str, bool]:
    """{name: whether it is as large as its parameter} of what the optimiser keeps for each parameter from step to step;
    found by a step of its own."""
    probe = nn.Parameter(torch.zeros(2))
    probe.grad = torch.zeros(2)
    optimizer = build_optimizer([probe], config, lr=1.0)
    optimizer.step()
    kept = optimizer.state[probe].items()
    return {name: value.numel() == 2 for name, value in kept if isinstance(value, torch.Tensor)}


def moments(optimizer: torch.optim.Optimizer, config: TrainConfig) -> list[Tensor]:
    """The optimiser's state, each tensor of it as one flat vector over all parameters that it moves."""
    states = list(optimizer.state_dict()["state"].values())
    names = state_tensors(config) if states else ()
    return [torch.cat([state[name].reshape(-1) for state in states]).cpu() for name in names]


def load_moments(optimizer: torch.optim.Optimizer, config: TrainConfig, vectors: Sequence[Tensor]) -> None:
    """Restores what `moments` gave of an optimiser of the same parameters."""
    if not vectors:
        return
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    states: dict[int, dict[str, Tensor]] = {index: {} for index in range(len(parameters))}
    for (name, is_large), vector in zip(state_tensors(config).items(), vectors, strict=True):
        pieces = vector.split([p.numel() for p in parameters]) if is_large else list(vector)
        for state, parameter, piece in zip(states.values(), parameters, pieces, strict=True):
            state[name] = (piece.view_as(parameter) if is_large else piece).clone()
    optimizer.load_state_dict(optimizer.state_dict() | {"state": states})


def optimizer_class(config: TrainConfig) -> Any:
    """The class; UserError for one that a training step cannot use."""
    kind = resolve("train.optimizer", OPTIMIZERS.get(config.optimizer, config.optimizer))
    if not (inspect.isclass(kind) and issubclass(kind, torch.optim.Optimizer)):
        raise UserError(f"train.optimizer={config.optimizer}: must be a subclass of torch.optim.Optimizer")
    if issubclass(kind, torch.optim.LBFGS):
        raise UserError(f"train.optimizer={config.optimizer}: evaluates the loss many times a step; use another")
    return kind
