"""Tensors on their way from the host to the device of a model."""

import torch
from torch import Tensor, nn


def upload(tensor: Tensor, device: str | torch.device) -> Tensor:
    """The tensor on this device; itself where it is there already.

    A GPU copies from pinned memory by itself while the host goes on: what is queued behind the copy sees all of it, and
    torch keeps the pinned memory until then.
    """
    if torch.device(device).type != "cuda" or tensor.is_cuda:
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def device_of(model: nn.Module) -> torch.device:
    """Where the model computes."""
    first = next(model.parameters(), None)
    return torch.device("cpu") if first is None else first.device
