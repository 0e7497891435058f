"""A forked process is shown for what it is, and not as the fork server."""

import ctypes
import mmap
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

_PR_SET_MM, _PR_SET_MM_MAP = 35, 14


class _MemoryMap(ctypes.Structure):
    """Linux's struct prctl_mm_map."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("start_code", "end_code", "start_data", "end_data", "start_brk", "brk")),
        *((name, ctypes.c_uint64) for name in ("start_stack", "arg_start", "arg_end", "env_start", "env_end")),
        ("auxv", ctypes.c_void_p),
        ("auxv_size", ctypes.c_uint32),
        ("exe_fd", ctypes.c_uint32),
    ]


def show_command_line(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Sets the command line and environment that ps, pgrep and /proc/PID show for this process.

    Without it a forked process shows those of the fork server. Where the kernel does not support prctl(PR_SET_MM_MAP),
    nothing changes.
    """
    arguments = b"".join(os.fsencode(word) + b"\0" for word in command)
    variables = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in environment.items())
    global _shown_memory  # the kernel reads it as long as the process lives
    # Private, because /proc does not show a shared mapping.
    _shown_memory = mmap.mmap(-1, len(arguments) + len(variables), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    _shown_memory.write(arguments + variables)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(_shown_memory))
    between, end = begin + len(arguments), begin + len(arguments) + len(variables)
    stat = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
    code, stack, data = stat[23:25], stat[25], stat[42:45]  # fields 26-28 and 45-47 of proc(5), counted from the third
    libc = ctypes.CDLL(None)
    libc.sbrk.restype = ctypes.c_void_p
    unchanged = [int(number) for number in (*code, *data)]
    layout = _MemoryMap(*unchanged, libc.sbrk(0), int(stack), begin, between, between, end, None, 0, 0xFFFFFFFF)
    libc.prctl(_PR_SET_MM, _PR_SET_MM_MAP, ctypes.byref(layout), ctypes.sizeof(layout), 0)


_shown_memory: mmap.mmap | None = None
