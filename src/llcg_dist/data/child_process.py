"""A process that ends with the one that started it: whoever forks or starts one wants none left over."""

import ctypes
import signal

_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl  # looked up here: little is allowed between fork and exec


def die_with_parent(death_signal: signal.Signals = signal.SIGKILL) -> None:
    """Asks the kernel for a signal to this process when its parent ends; the caller knows whether that has happened
    already."""
    _prctl(_PR_SET_PDEATHSIG, death_signal)
