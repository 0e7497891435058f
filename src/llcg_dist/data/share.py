"""Copies the folders of a partition store that the ranks of one host open, and no others, for that host."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from llcg_dist.data.atomic_files import make_folder, staged_folder
from llcg_dist.errors import UserError

SERVER_HOLDER = "server"
"""The name of the server among the holders that `llcg partition --share` lists."""


def write_share(store: Path, num_parts: int, holders: Sequence[str], root: Path) -> Path:
    """Copies what the `holders` (part numbers, or `server`) need into the partition root `root`; returns its path.

    A machine needs its part; the server needs the full graph and the manifest; topology/ goes to all.
    """
    for holder in holders:
        if holder not in (SERVER_HOLDER, *map(str, range(num_parts))):
            raise UserError(f"--share: {holder!r} is neither a part of 0..{num_parts - 1} nor {SERVER_HOLDER}")
    chosen = [path for path in sorted(store.iterdir()) if any(_needs(holder, path.name) for holder in holders)]
    target = root / store.name
    if target.exists():
        raise UserError(f"--to: {target} is there already; remove it first")
    make_folder(root, "--to")
    with staged_folder(target) as stage:
        for path in chosen:
            if path.is_dir():
                shutil.copytree(path, stage / path.name)
            else:
                shutil.copyfile(path, stage / path.name)
    return target


def _needs(holder: str, name: str) -> bool:
    if name.startswith("part"):
        return name == f"part{holder}"
    return holder == SERVER_HOLDER or name == "topology"
