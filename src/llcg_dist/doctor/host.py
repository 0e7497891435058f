"""Facts about this host, read from the system: memory, cores, GPUs, network interfaces, package versions."""

import importlib.metadata
import os
import platform
from dataclasses import dataclass
from pathlib import Path

from llcg_dist.comm.network import interfaces, listen_on
from llcg_dist.data.host_memory import memory

TESTED_VERSIONS = {
    "python": "3.11|3.12|3.13",
    "torch": "2.13.0",
    "numba": "0.68.1",
    "pymetis": "2025.2.2",
    "torch-geometric": "2.8.1",
    "hydra-core": "1.3.8",
    "omegaconf": "2.3.1",
    "ogb": "1.3.6",
    "numpy": "2.4.6",
}
"""The versions that the tests run with: a copy of constraints.txt, which is not part of the installed package."""

_BFLOAT16_FLAGS = ("amx_bf16", "avx512_bf16")


@dataclass(frozen=True)
class Host:
    """Memory in bytes; `versions` {package: version, None if missing}; `interfaces` {name: its first address}.

    `listen_failure` is the reason why no port can be opened on `address`; None if one can. `cpu_bfloat16` and
    `gpu_bfloat16` name what multiplies bfloat16 matrices faster than float32 ones; None if nothing does.
    """

    memory_total: int
    memory_free: int
    cores: int
    gpus: int
    versions: dict[str, str | None]
    interfaces: dict[str, str]
    wanted_interface: str | None
    address: str
    listen_failure: str | None
    cpu_bfloat16: str | None
    gpu_bfloat16: str | None


def this_host(interface: str | None = None) -> Host:
    """Reads the facts of this host. `interface`: the setting cluster.interface."""
    total, free = memory()
    first_addresses = {name: addresses[0] for name, addresses in interfaces().items() if addresses}
    wanted = interface or os.environ.get("GLOO_SOCKET_IFNAME") or None
    address = first_addresses.get(wanted or "", "127.0.0.1")
    versions = {name: version(name) for name in TESTED_VERSIONS}
    cores = len(os.sched_getaffinity(0))
    return Host(
        total, free, cores, num_gpus(), versions, first_addresses, wanted, address, listen_failure(address),
        cpu_bfloat16(), gpu_bfloat16(),
    )  # fmt: skip


def listen_failure(address: str) -> str | None:
    """Why no port can be opened on this address; None if one can. Opens any free port and closes it again."""
    try:
        listen_on(address, 0).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def version(package: str) -> str | None:
    """The installed version of a package, or of Python; None if it is not installed."""
    if package == "python":
        return platform.python_version()
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def num_gpus() -> int:
    """GPUs that torch can use."""
    import torch

    return torch.cuda.device_count()


def cpu_bfloat16(root: Path = Path("/")) -> str | None:
    """The flag of the CPU's instructions that multiply bfloat16 matrices; None if it has none."""
    flags = (root / "proc/cpuinfo").read_text().split()
    return next((flag for flag in _BFLOAT16_FLAGS if flag in flags), None)


def gpu_bfloat16() -> str | None:
    """The name of the GPU's units that multiply bfloat16 matrices; None if it has none."""
    import torch

    has_it = num_gpus() > 0 and torch.cuda.is_bf16_supported(including_emulation=False)
    return "tensor cores" if has_it else None


def read_ahead(folder: Path, root: Path = Path("/")) -> int:
    """Bytes that the kernel reads of this folder's disk for a page that is missing; 0 where it does not say."""
    device = folder.stat().st_dev
    setting = root / "sys/class/bdi" / f"{os.major(device)}:{os.minor(device)}" / "read_ahead_kb"
    return int(setting.read_text()) * 1024 if setting.exists() else 0
