"""Learn Locally, Correct Globally (LLCG, ICLR 2022) as a multi-process trainer on torch.distributed.

>>> import llcg_dist
>>> settings = {"model.hidden": 8, "algorithm.K": 1, "cluster.backend": "loopback"}
>>> run = llcg_dist.fit("dataset=synthetic dataset.nodes=200", machines=2, rounds=2, overrides=settings)
>>> run.summary["num_machines"]
2
"""

import os
from importlib import import_module
from typing import Any

from llcg_dist import lazy_imports

__version__ = "1.0.0"

_PUBLIC = {
    "Algorithm": "algorithms.base",
    "Graph": "data.graph",
    "Run": "api.run",
    "TrainingError": "errors",
    "UserError": "errors",
    "fit": "api.fit",
    "load": "api.run",
}
"""{name: module}, imported when first used: ranks import this package too, and need none of it. __init__.pyi has the
types."""

__all__ = ["Algorithm", "Graph", "Run", "TrainingError", "UserError", "__version__", "fit", "load"]

# DGL otherwise prints a notice and writes ~/.dgl/config.json at its first import.
os.environ.setdefault("DGLBACKEND", "pytorch")

lazy_imports.install()


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
