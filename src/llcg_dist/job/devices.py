"""What a rank computes on: pure functions of the settings and of what the host has."""

import os
from pathlib import Path

import torch

from llcg_dist.config.cluster import Device, StartMethod
from llcg_dist.config.train import Switch
from llcg_dist.errors import UserError


def choose_device(requested: str, gpus: int, local_rank: int) -> str:
    """cluster.device on a host with this many GPUs: ranks take them in turn."""
    if requested == Device.cuda and gpus == 0:
        raise UserError("cluster.device=cuda: torch sees no GPU here; use cluster.device=cpu")
    return "cpu" if requested == Device.cpu or gpus == 0 else f"cuda:{local_rank % gpus}"


def use_device(requested: str) -> str:
    """Chooses this rank's device (cluster.device) and makes it torch's current one."""
    device = choose_device(requested, torch.cuda.device_count(), int(os.environ.get("LOCAL_RANK", 0)))
    if device != "cpu":
        torch.cuda.set_device(device)
    return device


def threads_per_rank(requested: int, ranks_here: int) -> int:
    """cluster.threads; 0 shares the cores that this process may use among the host's ranks."""
    return requested or max(1, len(os.sched_getaffinity(0)) // ranks_here)


def server_threads(requested: int | str, threads: int, machines_here: int | None) -> int:
    """cluster.server_threads on a host with so many machines beside the server (None: it may use `threads` alone)."""
    if isinstance(requested, int):
        return requested
    free = 0 if machines_here is None else len(os.sched_getaffinity(0)) - machines_here * threads
    return max(threads, free)


def draws_ahead(requested: str, threads: int, ranks_here: int) -> bool:
    """sampling.prefetch: auto draws in a second thread where the host's ranks leave a core free."""
    free = len(os.sched_getaffinity(0)) > ranks_here * threads
    return requested == Switch.on or (requested == Switch.auto and free)


def evaluates_beside(requested: str, threads: int) -> bool:
    """evaluate.process: auto evaluates in a process of its own where that has a core to run on beside another rank, and
    where this one still has a single thread: others would not outlive the fork."""
    free = len(os.sched_getaffinity(0)) > 1 and threads == 1
    return requested == Switch.on or (requested == Switch.auto and free)


def forks_ranks(requested: str, device: str, gpu: bool) -> bool:
    """cluster.start: auto forks unless ranks may use a GPU, whose driver does not outlive a fork once it is awake."""
    return requested == StartMethod.fork or (requested == StartMethod.auto and (device == "cpu" or not gpu))


def gpu_here() -> bool:
    """NVIDIA's or AMD's, by the devices of their drivers: asking torch would wake them."""
    return any(Path(driver).exists() for driver in ("/dev/nvidiactl", "/dev/kfd"))
