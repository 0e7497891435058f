"""starts.json: when, where, with which version and by which command a run was started and resumed. Imports no torch."""

import json
import os
import platform
import shlex
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from llcg_dist import __version__
from llcg_dist.data.atomic_files import write_json

STARTS_FILE = "starts.json"
COMMAND_VARIABLE = "LLCG_COMMAND"
"""The environment variable in which `llcg` tells the ranks that it starts its own command line."""


def record_start(run_dir: Path, metric: str | None, after_round: int, more: Mapping[str, Any] | None = None) -> None:
    """Adds an entry to starts.json; a run that starts anew (`after_round` 0) begins with an empty list.

    `more`: further keys: what was `lost` (see loss_line), and which files were `restored` from checkpoint.mirror.
    """
    start = {"after_round": after_round, "metric": metric} | dict(more or {}) | origin()
    write_json(run_dir / STARTS_FILE, [*(read_starts(run_dir) if after_round else []), start])


def loss_line(loss: Mapping[str, Any]) -> str:
    """What a part has lost, in a sentence for the user; `loss` has the part, the round and the names of the state."""
    what = ", ".join(loss["state"]) or "nothing that training needs"
    place = f"part {loss['part']}: no intact checkpoint of round {loss['round']}"
    return f"{place}; lost: {what}; the run goes on from the server's"


def origin() -> dict[str, Any]:
    """Command, version, date and host of this process."""
    return {
        "command": os.environ.get(COMMAND_VARIABLE) or shlex.join(["python", *sys.argv]),
        "version": __version__,
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "host": platform.node(),
        "launch": _launch(),
    }


def started_by_this_launch(run_dir: Path) -> bool:
    """Whether this is a restart: torchrun's agent, or SLURM, has started the run in this folder before."""
    this = _launch()
    requeued = bool(int(os.environ.get("SLURM_RESTART_COUNT") or 0))
    keys = [key for key in ("agent", "slurm_job") if this.get(key) and (key == "agent" or requeued)]
    launches = [entry["launch"] for entry in read_starts(run_dir) if isinstance(entry.get("launch"), dict)]
    return any(launch.get(key) == this[key] for launch in launches for key in keys)


def _launch() -> dict[str, str]:
    """Names of who starts this process, and may start it again: torchrun's agent, a job of SLURM."""
    launch = {"slurm_job": os.environ["SLURM_JOB_ID"]} if "SLURM_JOB_ID" in os.environ else {}
    if "TORCHELASTIC_RUN_ID" in os.environ:
        parent = os.getppid()
        since_boot = Path(f"/proc/{parent}/stat").read_text().rsplit(")", 1)[1].split()[19]  # tells its pid from reuse
        launch["agent"] = f"{platform.node()} {parent} {since_boot}"
    return launch


def read_starts(run_dir: Path) -> list[dict[str, Any]]:
    """The entries of starts.json, the first start first; empty where the file is missing or damaged."""
    try:
        content = json.loads((run_dir / STARTS_FILE).read_text())
    except (OSError, ValueError, RecursionError):
        return []
    return [entry for entry in content if isinstance(entry, dict)] if isinstance(content, list) else []
