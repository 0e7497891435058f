"""A model as one flat float32 vector: what crosses the network, what is averaged.

Every float of the state_dict takes part, BatchNorm's running statistics included; integer counters do not.
"""

import torch
from torch import Tensor, nn


def _floats(model: nn.Module) -> list[Tensor]:
    return [tensor for tensor in model.state_dict().values() if tensor.is_floating_point()]


def flatten(model: nn.Module) -> Tensor:
    """[n] on the CPU, in state_dict order."""
    return torch.cat([tensor.detach().reshape(-1).cpu() for tensor in _floats(model)])


def load_flat(model: nn.Module, flat: Tensor) -> None:
    """Writes the vector back into the model, in place."""
    floats = _floats(model)
    if flat.numel() != sum(tensor.numel() for tensor in floats):
        raise ValueError(f"{flat.numel()} values for a model of {sum(t.numel() for t in floats)}")
    with torch.no_grad():
        for tensor, values in zip(floats, flat.split([tensor.numel() for tensor in floats]), strict=True):
            tensor.copy_(values.view_as(tensor))


def contiguous_parameters(model: nn.Module) -> Tensor:
    """The flat vector as the model's own memory: its parameters and buffers become views of one contiguous tensor.

    One copy moves a model then; tensor by tensor, going through the modules takes longer than the bytes.
    """
    flat = torch.cat([tensor.detach().reshape(-1) for tensor in _floats(model)])
    own = [tensor for tensor in model.state_dict(keep_vars=True).values() if tensor.is_floating_point()]
    for tensor, values in zip(own, flat.split([tensor.numel() for tensor in own]), strict=True):
        tensor.data = values.view_as(tensor)
    return flat


def gradient_of(value: Tensor, model: nn.Module) -> Tensor:
    """[number of learned parameters] float64 on the CPU; leaves no gradient behind in the model."""
    parameters = list(model.parameters())
    found = torch.autograd.grad(value, parameters, allow_unused=True)
    parts = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)]
    return torch.cat([part.reshape(-1).cpu() for part in parts]).double()


def statistics_mask(model: nn.Module) -> Tensor:
    """[n] of bool over the flat vector: True for what no gradient moves, BatchNorm's running statistics."""
    learned = {name for name, _ in model.named_parameters()}
    floats = [(name, tensor) for name, tensor in model.state_dict().items() if tensor.is_floating_point()]
    return torch.cat([torch.full((tensor.numel(),), name not in learned) for name, tensor in floats])


def state_dict_bytes(model: nn.Module) -> int:
    """What the paper's MB column counts for one machine: the whole state_dict, counters included."""
    return sum(tensor.numel() * tensor.element_size() for tensor in model.state_dict().values())


def is_finite(vector: Tensor) -> bool:
    """A sum is finite only if all of it is, and a third of the work; one that overflows is looked at again."""
    return bool(vector.sum().isfinite()) or bool(vector.isfinite().all())
