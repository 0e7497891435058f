"""What a rank computes on, and what its messages cross on: pure functions of what there is."""

import os
from collections.abc import Sequence
from pathlib import Path

from llcg_dist.errors import UserError


def choose_device(requested: str, gpus: int, local_rank: int) -> str:
    """cluster.device on a host with this many GPUs: ranks take them in turn."""
    if requested == "cuda" and gpus == 0:
        raise UserError("cluster.device=cuda: torch sees no GPU here; use cluster.device=cpu")
    return "cpu" if requested == "cpu" or gpus == 0 else f"cuda:{local_rank % gpus}"


def choose_backend(requested: str, own_gpu: Sequence[bool]) -> str:
    """torch.distributed's name for cluster.backend. `own_gpu[r]`: rank r has a GPU that no other rank uses.

    NCCL wants one for each rank, and has Gloo beside it for CPU tensors. Otherwise models cross through the CPU,
    wherever they are trained.
    """
    if requested == "nccl" and not all(own_gpu):
        rank = list(own_gpu).index(False)
        raise UserError(f"cluster.backend=nccl: rank {rank} has no GPU of its own; use cluster.backend=auto")
    return "cpu:gloo,cuda:nccl" if requested in ("auto", "nccl") and all(own_gpu) else "gloo"


def threads_per_rank(requested: int, ranks_here: int) -> int:
    """cluster.threads; 0 shares the cores that this process may use among the host's ranks."""
    return requested or max(1, len(os.sched_getaffinity(0)) // ranks_here)


def forks_ranks(requested: str, device: str, gpu: bool) -> bool:
    """cluster.start: auto forks unless ranks may use a GPU, whose driver does not outlive a fork once it is awake."""
    return requested == "fork" or (requested == "auto" and (device == "cpu" or not gpu))


def gpu_here() -> bool:
    """NVIDIA's or AMD's, by the devices of their drivers: asking torch would wake them."""
    return any(Path(driver).exists() for driver in ("/dev/nvidiactl", "/dev/kfd"))
