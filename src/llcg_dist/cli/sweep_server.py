"""What the fork server of a sweep imports, once for all jobs; nobody else should. It ends at once with the sweep."""

import ctypes
import signal

ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG; by itself it ends in its own time, with torch loaded

import llcg_dist.train  # noqa: E402, F401
