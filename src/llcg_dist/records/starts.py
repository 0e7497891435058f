"""starts.json: when, where, with which version and by which command a run was started and resumed. Imports no torch."""

import json
import os
import platform
import shlex
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from llcg_dist import __version__
from llcg_dist.data.atomic_files import write_json

STARTS_FILE = "starts.json"
COMMAND_VARIABLE = "LLCG_COMMAND"
"""The environment variable in which `llcg` tells the ranks that it starts its own command line."""


def record_start(run_dir: Path, metric: str | None, after_round: int) -> None:
    """Adds an entry to starts.json; a run that starts anew (`after_round` 0) begins with an empty list."""
    start = {"after_round": after_round, "metric": metric} | origin()
    write_json(run_dir / STARTS_FILE, [*(read_starts(run_dir) if after_round else []), start])


def origin() -> dict[str, Any]:
    """Command, version, date and host of this process."""
    return {
        "command": os.environ.get(COMMAND_VARIABLE) or shlex.join(["python", *sys.argv]),
        "version": __version__,
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "host": platform.node(),
    }


def read_starts(run_dir: Path) -> list[dict[str, Any]]:
    """The entries of starts.json, the first start first; empty where the file is missing or damaged."""
    try:
        content = json.loads((run_dir / STARTS_FILE).read_text())
    except (OSError, ValueError, RecursionError):
        return []
    return [entry for entry in content if isinstance(entry, dict)] if isinstance(content, list) else []
