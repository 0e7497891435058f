"""The kernels of kernels.py, compiled once on a host and read from a cache by ranks (data/kernel_cache.py)."""

from functools import cache
from types import ModuleType

from llcg_dist.data.kernel_cache import KernelModule

KERNELS = KernelModule("llcg_dist.sampling.kernels", caller=__name__)


@cache
def kernels() -> ModuleType:
    """The module kernels.py, its functions compiled."""
    return KERNELS.load()


def load() -> None:
    """Loads all kernels now, so that processes forked from this one share them."""
    kernels()
    call_all()


def call_all() -> None:
    """Calls every kernel once for each type of index, which compiles it, or loads it from the cache."""
    import numpy as np

    from llcg_dist.data.rows import frozen
    from llcg_dist.sampling import kernels as module

    for dtype in (np.int32, np.int64):
        indptr, indices = frozen(np.array([0, 1, 2], dtype)), frozen(np.array([1, 0], dtype))
        nodes, place = np.zeros(1, dtype), np.full(2, -1, np.int32)
        module.set_places(nodes, place, 0)
        module.sample_layer(indptr, indices, nodes, 0, place, 1, 0.0, False, 0, 0)
