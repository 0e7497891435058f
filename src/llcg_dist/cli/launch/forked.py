"""Processes forked from one that has imported everything (cli/launch/fork_server.py). Torch, PyG and DGL take five
seconds to import, and a rank must not wait until nine of them have done so on two cores.
"""

import ctypes
import mmap
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path
from typing import Any


def fork_server(threads: int) -> Any:
    """Starts it, where it does not run yet, and returns at once: it imports while the caller goes on."""
    os.environ["OMP_NUM_THREADS"] = str(threads)  # read when libraries are imported
    multiprocessing.set_start_method("forkserver", force=True)  # joblib's workers know a method that it does not
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["llcg_dist.cli.launch.fork_server"])
    forkserver.ensure_running()
    return context


def run_rank(overrides: Sequence[str]) -> None:
    """In the forked process: what `-m llcg_dist.train` is to one that starts from nothing."""
    from llcg_dist.train import main

    _set_command_line([sys.executable, "-m", "llcg_dist.train", *overrides], os.environ)
    code = main(overrides)
    sys.stdout.flush()
    if code:
        os._exit(code)  # not sys.exit: as in train.py, torch's threads may still wait for ranks that are gone
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # all is done; the launcher lets it go when all ranks are


def die_with_fork_server() -> None:
    """In a forked process: whatever it does, it ends with the fork server, which ends with its launcher."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


class _MemoryMap(ctypes.Structure):
    """Linux's struct prctl_mm_map."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("start_code", "end_code", "start_data", "end_data", "start_brk", "brk")),
        *((name, ctypes.c_uint64) for name in ("start_stack", "arg_start", "arg_end", "env_start", "env_end")),
        ("auxv", ctypes.c_void_p),
        ("auxv_size", ctypes.c_uint32),
        ("exe_fd", ctypes.c_uint32),
    ]


def _set_command_line(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """What ps, pgrep and /proc show of this process, as if it had been started so; otherwise it looks like its server.

    A courtesy: where the kernel was built without it, nothing changes.
    """
    arguments = b"".join(os.fsencode(word) + b"\0" for word in command)
    variables = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in environment.items())
    global _shown  # the kernel reads it as long as the process lives
    _shown = mmap.mmap(-1, len(arguments) + len(variables), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # shared: not shown
    _shown.write(arguments + variables)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(_shown))
    between, end = begin + len(arguments), begin + len(arguments) + len(variables)
    stat = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
    code, stack, data = stat[23:25], stat[25], stat[42:45]  # fields 26-28 and 45-47 of proc(5), counted from the third
    libc = ctypes.CDLL(None)
    libc.sbrk.restype = ctypes.c_void_p
    known = [int(number) for number in (*code, *data)]
    layout = _MemoryMap(*known, libc.sbrk(0), int(stack), begin, between, between, end, None, 0, 0xFFFFFFFF)
    libc.prctl(35, 14, ctypes.byref(layout), ctypes.sizeof(layout), 0)  # PR_SET_MM, PR_SET_MM_MAP


_shown: mmap.mmap | None = None
