"""Figures of a long bench, on disk as soon as they are measured: after a kill the same command goes on."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llcg_dist.data.atomic_files import write_json

Figures = dict[str, Any]
"""Plain numbers, as bench/results.json holds them."""


class Kept:
    """Figures by name, in one JSON file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._found: dict[str, Figures] = json.loads(path.read_text()) if path.exists() else {}

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def measured(self, name: str, measure: Callable[[], Figures]) -> Figures:
        """The figures of this name, measured now if they have not been."""
        if name not in self._found:
            self._found[name] = measure()
            write_json(self._path, self._found)
        return self._found[name]

    def forget(self) -> None:
        self._found.clear()
        self._path.unlink(missing_ok=True)
