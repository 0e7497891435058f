"""The state of torch's random generators on the CPU and on a device, both in the host's memory."""

from collections.abc import Sequence

import torch
from torch import Tensor


def generator_state(device: str) -> list[Tensor]:
    """Of the CPU's generator, and of a GPU's own: dropout draws there."""
    gpu = [torch.cuda.get_rng_state(device)] if torch.device(device).type == "cuda" else []
    return [torch.get_rng_state(), *gpu]


def set_generator_state(state: Sequence[Tensor], device: str) -> None:
    """Goes on where `generator_state` was taken."""
    torch.set_rng_state(state[0])
    for of_gpu in state[1:]:
        torch.cuda.set_rng_state(of_gpu, device)
