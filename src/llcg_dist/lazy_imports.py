"""Lazy loading of submodules that a library imports eagerly and that ranks never use.

torch_geometric.datasets alone imports pandas, pyarrow and HTTP clients: a sixth of a rank's memory after the imports.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

_LAZY_MODULES = {"torch_geometric.datasets"}


class _LazyModuleFinder(MetaPathFinder):
    """Finds the modules of _LAZY_MODULES and defers their execution until an attribute is first read."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname in _LAZY_MODULES else None
        if spec and spec.loader:
            spec.loader = LazyLoader(spec.loader)
        return spec


def install() -> None:
    """Puts the finder in front of sys.meta_path, once."""
    if not any(isinstance(finder, _LazyModuleFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _LazyModuleFinder())
