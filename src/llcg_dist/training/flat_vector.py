"""A model as one flat float32 vector, the form in which models are sent, averaged and checkpointed.

It holds every floating-point tensor of the state_dict, BatchNorm's running statistics included, but no integer
counters (num_batches_tracked).
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from llcg_dist.data.upload import upload
from llcg_dist.errors import UserError

Place = tuple[nn.Module, str, Tensor | None]
"""A module, the name of a buffer in it, and the buffer."""


def _floating_point_tensors(model: nn.Module, keep_vars: bool = False) -> dict[str, Tensor]:
    """By name, in state_dict order; with `keep_vars` the parameters themselves instead of detached tensors.

    A tensor that several modules share is there once, under its first name.
    """
    seen, tensors = set[int](), dict[str, Tensor]()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if tensor.is_floating_point() and id(tensor) not in seen:
            seen.add(id(tensor))
            tensors[name] = tensor if keep_vars else tensor.detach()
    return tensors


def flatten(model: nn.Module) -> Tensor:
    """The model's flat vector [n]: a copy on the CPU, in state_dict order."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in _floating_point_tensors(model).values()]).cpu()


def load_flat(model: nn.Module, flat: Tensor) -> None:
    """Copies a flat vector [n] into the model's parameters and buffers, in place."""
    tensors = list(_floating_point_tensors(model).values())
    if flat.numel() != sum(tensor.numel() for tensor in tensors):
        raise ValueError(f"{flat.numel()} values for a model of {sum(t.numel() for t in tensors)}")
    with torch.no_grad():
        flat = upload(flat, tensors[0].device)
        for tensor, values in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(values.view_as(tensor))


def buffers_in_vector(model: nn.Module) -> list[Place]:
    """Where the buffers that are in the flat vector belong, and those that have no value yet and would be in it."""
    in_vector = {id(tensor) for tensor in _floating_point_tensors(model, keep_vars=True).values()}
    return [
        (module, key, buffer)
        for module in model.modules()
        for key, buffer in module._buffers.items()
        if (key not in module._non_persistent_buffers_set if buffer is None else id(buffer) in in_vector)
    ]


def keep_in_vector(places: Sequence[Place]) -> None:
    """Where a forward pass has put a tensor of its own in a buffer's place, the buffer takes its values, and its place
    again: the vector would go on with the old ones."""
    for module, key, buffer in places:
        found = module._buffers[key]
        if found is buffer or (buffer is None and found is not None and not found.is_floating_point()):
            continue
        if buffer is None or found is None or found.shape != buffer.shape:
            was, became = ("None" if tensor is None else str(list(tensor.shape)) for tensor in (buffer, found))
            rule = f"its forward made {became} of the buffer {key}, which was {was} and is sent with the model"
            raise UserError(f"{type(module).__name__}: {rule}; keep its shape, or register it with persistent=False")
        buffer.copy_(found.detach())
        module._buffers[key] = buffer


def other_buffers(model: nn.Module) -> dict[str, Tensor]:
    """A copy of the buffers that are not in the flat vector: counters, and those that no state_dict has."""
    in_vector = {id(tensor) for tensor in _floating_point_tensors(model, keep_vars=True).values()}
    others = {name: buffer for name, buffer in model.named_buffers() if id(buffer) not in in_vector}
    return {name: buffer.detach().cpu().clone() for name, buffer in others.items()}


def load_buffers(model: nn.Module, saved: dict[str, Tensor]) -> None:
    """Puts such buffers into the model; a forward pass may give one another shape than it is built with."""
    for name, buffer in saved.items():
        owner, _, key = name.rpartition(".")
        module = model.get_submodule(owner)
        own = module._buffers[key]
        if own is not None and own.shape == buffer.shape:
            own.copy_(buffer)
        else:
            setattr(module, key, buffer.to(next(model.parameters()).device))


def contiguous_parameters(model: nn.Module) -> Tensor:
    """Makes the model's parameters and buffers views of one contiguous flat vector [n], and returns that vector.

    A model is then loaded or read with a single copy; tensor by tensor, walking through the modules takes longer than
    copying the bytes.
    """
    tensors = list(_floating_point_tensors(model, keep_vars=True).values())
    flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
    for tensor, values in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.data = values.view_as(tensor)
    return flat


def gradient_of(value: Tensor, model: nn.Module) -> Tensor:
    """The gradient of a scalar loss as [number of learned parameters] float64 on the CPU.

    The parameters' .grad is left as it is.
    """
    parameters = list(model.parameters())
    moved = [parameter for parameter in parameters if parameter.requires_grad]
    gradients = dict(zip(map(id, moved), torch.autograd.grad(value, moved, allow_unused=True), strict=True))
    filled = [torch.zeros_like(p) if gradients.get(id(p)) is None else gradients[id(p)] for p in parameters]
    return torch.cat([gradient.reshape(-1) for gradient in filled]).cpu().double()


def statistics_mask(model: nn.Module) -> Tensor:
    """[n] bool over the flat vector: True at BatchNorm's running statistics, which no gradient moves."""
    learned = {name for name, _ in model.named_parameters()}
    tensors = _floating_point_tensors(model)
    return torch.cat([torch.full((tensor.numel(),), name not in learned) for name, tensor in tensors.items()])


def layer_sizes(model: nn.Module) -> dict[str, int]:
    """How many learned parameters each layer has, by the name of the module that holds them, in the flat vector's
    order."""
    sizes: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        layer = name.rpartition(".")[0]
        sizes[layer] = sizes.get(layer, 0) + parameter.numel()
    return sizes


def state_dict_bytes(model: nn.Module) -> int:
    """Bytes of the full state_dict, integer counters included: what the paper's MB column counts per machine."""
    return sum(tensor.numel() * tensor.element_size() for tensor in model.state_dict().values())


def is_finite(vector: Tensor) -> bool:
    """Whether all values are finite.

    A finite sum proves it in a third of the time that checking each value takes; only where the sum is not finite,
    which may be an overflow of finite values, is each value checked.
    """
    return bool(vector.sum().isfinite()) or bool(vector.isfinite().all())
