"""Whose run directory is this, and may we go on in it?"""

import fcntl
import json
import os
import time
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from llcg_dist.config.compare import resume_conflicts
from llcg_dist.config.schema import Config, Resume
from llcg_dist.data.atomic_files import make_folder
from llcg_dist.errors import UserError

_OLD_JOB_WAIT_SECONDS = 30.0


class RunState(StrEnum):
    NEW = "new"
    UNFINISHED = "unfinished"
    FINISHED = "finished"


def choose_run_dir(config: Config) -> Path:
    """One folder for all ranks: the server picks it and tells the others."""
    if config.run_dir:
        return Path(config.run_dir)
    if int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", 0)) > 0:
        raise UserError("run_dir: must be set where torchrun may restart the job, so that it finds its checkpoints")
    now = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    return Path("runs") / f"{now}_{config.dataset.name}_{config.algorithm.label}"


def inspect_run_dir(config: Config, run_dir: Path) -> RunState:
    """What the folder holds. Raises UserError where these settings must not go on in it."""
    if not (run_dir / "config.yaml").exists():
        if (run_dir / "metrics.jsonl").exists():
            raise UserError(f"run_dir={run_dir}: holds records without a config.yaml; choose another folder")
        if config.resume == Resume.must:
            raise UserError(f"resume=must: there is no run to continue in run_dir={run_dir}")
        return RunState.NEW
    if config.resume == Resume.never:
        raise UserError(f"resume=never: run_dir={run_dir} holds another run's records; choose another folder")
    conflicts = resume_conflicts(_read_settings(run_dir / "config.yaml"), config)
    if conflicts:
        rule = f"holds a run with other settings: {', '.join(conflicts)}; choose another folder"
        raise UserError(f"run_dir={run_dir}: {rule}")
    return RunState.FINISHED if _finished_rounds(run_dir) >= config.num_rounds else RunState.UNFINISHED


class RunLock:
    """Held by the server while it lives; a new job waits a while for the old one's to be let go.

    The lock is on the folder itself: the kernel drops it with the process, and no file is left behind.
    """

    def __init__(self, run_dir: Path) -> None:
        make_folder(run_dir, "run_dir")
        self._folder = os.open(run_dir, os.O_RDONLY)
        end = time.monotonic() + _OLD_JOB_WAIT_SECONDS
        while True:
            try:
                fcntl.flock(self._folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > end:
                    os.close(self._folder)
                    raise UserError(f"run_dir={run_dir}: another job is running in it; wait, or stop it") from None
                time.sleep(0.1)

    def __enter__(self) -> "RunLock":
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self._folder)


def is_locked(run_dir: Path) -> bool:
    """Whether a job of this host works in the folder now. A job that starts at this moment tries again."""
    folder = os.open(run_dir, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(folder)
    return False


def _finished_rounds(run_dir: Path) -> int:
    try:
        return int(json.loads((run_dir / "summary.json").read_text())["num_rounds"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        content = OmegaConf.to_container(OmegaConf.load(path))
    except Exception as error:  # YAML's and OmegaConf's errors have no common base
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(f"{path}: not readable ({reason}); choose another run_dir") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: holds no settings; choose another run_dir")
    return {str(key): value for key, value in content.items()}
