"""Modules of numba kernels, compiled once on a host, in a process of its own, and read from a cache by all others.

Compiling takes seconds, and leaves a compiler of 65 MB in the process that does it. The cache is a folder inside
LLCG_KERNEL_CACHE, XDG_CACHE_HOME or ~/.cache. Where it cannot be written every process compiles for itself, which a
warning says.
"""

import atexit
import fcntl
import hashlib
import importlib
import importlib.metadata
import importlib.util
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

log = logging.getLogger(__name__)

_COMPLETE = "complete"
"""A file of the cache that is there when all kernels are."""


@dataclass(frozen=True)
class KernelModule:
    """A module of kernels by its name, and the module whose function `call_all` calls every one of them once."""

    name: str
    caller: str

    @property
    def source(self) -> Path:
        return Path(importlib.util.find_spec(self.name).origin)  # type: ignore[union-attr, arg-type]

    def load(self) -> ModuleType:
        """The module, its functions compiled."""
        folder = self.ensure_compiled()
        from numba import config

        settings: Any = config  # numba makes its settings attributes at import
        before = settings.CACHE_DIR
        settings.CACHE_DIR = str(folder or _folder_of_this_process())
        try:
            return importlib.import_module(self.name)
        finally:
            settings.CACHE_DIR = before

    def ensure_compiled(self) -> Path | None:
        """The folder of the compiled kernels, made now if there is none; None where it cannot be written."""
        folder = self.cache_folder()
        complete = folder / _COMPLETE
        if complete.exists():
            return folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # the ranks of a host may all come at once
                if not complete.exists():
                    self._compile_in_subprocess(folder)
                    complete.touch()
        except OSError as error:
            log.warning(
                "%s: cannot be written (%s); every process compiles %s for itself, which takes seconds. "
                "Set LLCG_KERNEL_CACHE to a folder that can be written",
                folder,
                error.strerror,
                self.name,
            )
            return None
        return folder

    def cache_folder(self) -> Path:
        """A folder of its own for every source, Python, numba and processor: code compiled for another does not load.

        numba goes by the path and the time of the source as well.
        """
        source = f"{self.source.resolve()} {self.source.stat().st_mtime_ns}"
        jit_off = os.environ.get("NUMBA_DISABLE_JIT", "0")  # nothing is compiled then: must not pass for whole
        versions = sys.version, importlib.metadata.version("numba"), platform.machine(), jit_off
        facts = (source, self.source.read_text(), *versions, _processor())
        key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
        given = os.environ.get("LLCG_KERNEL_CACHE")
        root = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "llcg_dist"
        return root / f"kernels-{key}"

    def _compile_in_subprocess(self, folder: Path) -> None:
        command = [sys.executable, "-c", f"from {self.caller} import call_all; call_all()"]
        environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{self.name} does not compile: {done.stderr.strip().splitlines()[-1:]}")


def _folder_of_this_process() -> str:
    folder = tempfile.mkdtemp(prefix="llcg-kernels-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _processor() -> str:
    """Model and features of the processor; hosts of a cluster that share a home may differ in them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags"))}))
