"""Where the user's own files are found: modules in the current folder, presets in the folders of --config-dir and
LLCG_CONF.

A folder of presets looks like conf/: DIR/model/mine.yaml is model=mine, DIR/experiment/x.yaml is experiment=x. Settings
are recorded composed (config.yaml of a run), so that nothing but the command that names such a preset needs the folder.
"""

import importlib.resources
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin

from llcg_dist.errors import UserError

VARIABLE = "LLCG_CONF"
"""The environment variable with the folders of presets, separated by colons; the processes of a job inherit it."""
CONFIG_DIR = "--config-dir"
"""The option that adds such a folder; Hydra's name, as is -cd."""


def find_own_files(arguments: Sequence[str]) -> list[str]:
    """Called first in every process that reads settings: makes the user's modules importable and presets known, here
    and in all processes that this one starts. Returns the arguments without --config-dir."""
    here = os.getcwd()
    if here not in sys.path and not sys.flags.safe_path:
        sys.path.insert(0, here)  # as `python -m` and torchrun do; the script `llcg` has its own folder there
    others, given = _split(arguments)
    folders = [str(Path(folder).absolute()) for folder in [*given, *map(str, own_presets())]]
    if folders:
        os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys(folders))
    return others


def own_presets() -> list[Path]:
    """The user's folders of presets."""
    return [Path(folder).absolute() for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder]


def preset_folders() -> list[Path]:
    """All folders of presets, those of the package first."""
    return [Path(str(importlib.resources.files("llcg_dist.conf"))), *own_presets()]


def register_own_presets() -> None:
    """Adds the user's folders to the search path of every composition with Hydra in this process."""
    Plugins.instance().register(_OwnPresets)


class _OwnPresets(SearchPathPlugin):
    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for folder in own_presets():
            _check(folder)
            search_path.append("own", f"file://{folder}")


def _check(folder: Path) -> None:
    """Raises a UserError for a folder that is missing, and for a preset that one of the package's would hide."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder of presets ({CONFIG_DIR} or {VARIABLE})")
    packaged = preset_folders()[0]
    for preset in packaged.rglob("*.yaml"):
        own = folder / preset.relative_to(packaged)
        if own.exists() and folder != packaged:
            raise UserError(f"{own}: llcg_dist has a preset of this name; give yours another")


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """(the other arguments, the values of --config-dir)."""
    others: list[str] = []
    folders: list[str] = []
    words = iter(arguments)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag not in (CONFIG_DIR, "-cd"):
            others.append(word)
            continue
        folder = value if equals else next(words, "")
        if not folder or folder.startswith("-"):
            raise UserError(f"{flag}: must be followed by a folder of presets")
        folders.append(folder)
    return others, folders
