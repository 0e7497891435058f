"""What a rank computes on: pure functions of the settings and of what the host has."""

import os
from pathlib import Path

import torch

from llcg_dist.config.cluster import Device, StartMethod
from llcg_dist.config.train import FeaturesOn, Switch
from llcg_dist.data.views import View
from llcg_dist.errors import UserError

_FEATURES_SHARE = 0.5
"""The share of a device's free memory that features may take, and that hidden states of an evaluation may: the rest is
for models, mini-batches and what a step keeps."""


def choose_device(requested: str, gpus: int, local_rank: int) -> str:
    """cluster.device on a host with this many GPUs: ranks take them in turn."""
    if requested == Device.cuda and gpus == 0:
        raise UserError("cluster.device=cuda: torch sees no GPU here; use cluster.device=cpu")
    return "cpu" if requested == Device.cpu or gpus == 0 else f"cuda:{local_rank % gpus}"


def has_own_gpu(device: str, gpus: int, ranks_here: int) -> bool:
    """Whether no other rank of this host computes on this rank's GPU: what NCCL wants."""
    return device != "cpu" and ranks_here <= gpus


def keeps_features(requested: str, device: str, feature_bytes: int | None, free_bytes: int) -> bool:
    """sampling.features_on for a rank on this device, of whose memory so much is free: whether the features are kept
    there. `feature_bytes`: None where a method fetches them from other machines."""
    if device == "cpu" or requested == FeaturesOn.host or (feature_bytes is None and requested == FeaturesOn.auto):
        return False
    if feature_bytes is None:
        what = "this method's machines fetch features from each other"
        raise UserError(f"sampling.features_on=device: {what}; use sampling.features_on=auto")
    fits = feature_bytes <= _FEATURES_SHARE * free_bytes
    if requested == FeaturesOn.device and not fits:
        sizes = f"{feature_bytes / 1e9:.1f} GB are more than half of the {free_bytes / 1e9:.1f} GB free on {device}"
        raise UserError(f"sampling.features_on=device: {sizes}; use sampling.features_on=auto")
    return fits


def place_features(view: View, requested: str, device: str) -> None:
    """Keeps the view's features on the device where they may and should be there."""
    if keeps_features(requested, device, view.feature_bytes, free_memory(device)):
        view.keep_features_on(device)


def evaluation_device(device: str, scratch: str | None, state_bytes: int, free_bytes: int) -> str:
    """Where models are evaluated by a server on this device: there, unless two hidden states of the whole graph would
    take more than half of its free memory, or are kept on disk (evaluate.scratch)."""
    fits = scratch is None and 2 * state_bytes <= _FEATURES_SHARE * free_bytes
    return device if device != "cpu" and fits else "cpu"


def free_memory(device: str) -> int:
    """Bytes of a GPU's own memory; 0 on a CPU, which has none of its own."""
    return int(torch.cuda.mem_get_info(device)[0]) if torch.device(device).type == "cuda" else 0


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
