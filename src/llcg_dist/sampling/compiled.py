"""Loads the kernels of kernels.py, compiled once on a host, in a process of its own, and read from a cache by ranks.

Compiling takes seconds, and leaves a compiler of 65 MB in the process that does it. The cache is a folder inside
LLCG_KERNEL_CACHE, XDG_CACHE_HOME or ~/.cache. Where it cannot be written every process compiles for itself, which a
warning says.
"""

import fcntl
import hashlib
import importlib.metadata
import logging
import os
import platform
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

log = logging.getLogger(__name__)

_SOURCE = Path(__file__).with_name("kernels.py")
_COMPLETE = "complete"
"""A file of the cache that is there when all kernels are."""


@cache
def kernels() -> ModuleType:
    """The module kernels.py, its functions compiled."""
    folder = ensure_compiled()
    from numba import config

    settings: Any = config  # numba makes its settings attributes at import
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(folder or tempfile.mkdtemp(prefix="llcg-kernels-"))
    try:
        from llcg_dist.sampling import kernels as module
    finally:
        settings.CACHE_DIR = before
    return module


def ensure_compiled() -> Path | None:
    """The folder of the compiled kernels, made now if there is none; None where it cannot be written."""
    folder = cache_folder()
    complete = folder / _COMPLETE
    if complete.exists():
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the ranks of a host may all come at once
            if not complete.exists():
                _compile_in_subprocess(folder)
                complete.touch()
    except OSError as error:
        log.warning(
            "%s: cannot be written (%s); every process compiles the sampler for itself, which takes seconds. "
            "Set LLCG_KERNEL_CACHE to a folder that can be written",
            folder,
            error.strerror,
        )
        return None
    return folder


def cache_folder() -> Path:
    """A folder of its own for every source, Python, numba and processor: code compiled for another does not load.

    numba goes by the path and the time of the source as well.
    """
    source = f"{_SOURCE.resolve()} {_SOURCE.stat().st_mtime_ns}"
    versions = [sys.version, importlib.metadata.version("numba"), platform.machine()]
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        versions.append("not compiled")  # nothing is, and the folder must not pass for one with kernels
    facts = (source, _SOURCE.read_text(), *versions, _processor())
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    given = os.environ.get("LLCG_KERNEL_CACHE")
    root = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "llcg_dist"
    return root / f"kernels-{key}"


def _processor() -> str:
    """Model and features of the processor; hosts of a cluster that share a home may differ in them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags"))}))


def _compile_in_subprocess(folder: Path) -> None:
    command = [sys.executable, "-c", f"from {__name__} import call_all; call_all()"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"the sampler's kernels do not compile: {done.stderr.strip().splitlines()[-1:]}")


def load() -> None:
    """Loads all kernels now, so that processes forked from this one share them."""
    kernels()
    call_all()


def call_all() -> None:
    """Calls every kernel once for each type of index, which compiles it, or loads it from the cache."""
    import numpy as np

    from llcg_dist.sampling import kernels as module
    from llcg_dist.sampling.neighbor import frozen

    for dtype in (np.int32, np.int64):
        indptr, indices = frozen(np.array([0, 1, 2], dtype)), frozen(np.array([1, 0], dtype))
        nodes, place = np.zeros(1, dtype), np.full(2, -1, np.int32)
        module.set_places(nodes, place, 0)
        module.sample_layer(indptr, indices, nodes, 0, place, 1, 0.0, False, 0, 0)
