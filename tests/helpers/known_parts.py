"""Parts that a job before has cut: importing DGL for its METIS takes ten times as long as a tiny job."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from llcg_dist.config.schema import Config
from llcg_dist.data.partition import store_path


class KnownParts:
    """Copies of stores of generated graphs, for one process of tests. Tests of partitioning itself do without."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    @contextmanager
    def of(self, config: Config) -> Iterator[None]:
        """Puts the parts of these settings where a job looks for them, or keeps those that it has cut."""
        store = store_path(config)
        known = self._root() / f"{store.name}-{config.partition.backend}"
        if config.dataset.source != "synthetic":
            yield
            return
        if known.exists() and not store.exists():
            shutil.copytree(known, store)
        yield
        if not known.exists() and (store / "manifest.json").exists():
            shutil.copytree(store, known)

    def _root(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="known_parts_"))
            atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder


KNOWN_PARTS = KnownParts()
