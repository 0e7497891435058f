"""The Python interface: `fit` trains over data in memory or on disk and returns a Run, `load` opens one."""

from llcg_dist.api.fit import fit
from llcg_dist.api.run import Run, load

__all__ = ["Run", "fit", "load"]
