"""Parts of libraries that are loaded when they are first used: their packages import them for all, ranks need none.

PyG's data sets alone bring pandas, pyarrow and HTTP clients: a sixth of a rank's memory before it holds anything.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

_LATER = {"torch_geometric.datasets"}


class _Later(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname in _LATER else None
        if spec and spec.loader:
            spec.loader = LazyLoader(spec.loader)
        return spec


def install() -> None:
    if not any(isinstance(finder, _Later) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Later())
