"""What a fork server imports, once for all that it forks; nobody else should. It ends at once with its launcher."""

import ctypes
import gc
import os
import signal

ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG; by itself it ends in its own time, with torch loaded
os.setsid()  # a signal to the launcher's group is the launcher's to pass on: ranks end in order before their server
signal.signal(signal.SIGTERM, signal.SIG_IGN)

import llcg_dist.train  # noqa: E402, F401

gc.collect()
gc.freeze()  # what is imported stays: ranks neither look through it again nor copy its pages
