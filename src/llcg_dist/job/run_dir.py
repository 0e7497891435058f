"""Whose run directory is this, and may we go on in it?"""

import fcntl
import os
import shutil
import time
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from llcg_dist.config.compare import resume_conflicts
from llcg_dist.config.recorded import read_settings_to_resume
from llcg_dist.config.schema import Config, Resume
from llcg_dist.data.atomic_files import make_folder
from llcg_dist.errors import UserError
from llcg_dist.job.resumption import starts_over
from llcg_dist.records.console import say
from llcg_dist.records.reading import read_object, readable_rows
from llcg_dist.training.early_stop import EarlyStopping

_OLD_JOB_WAIT_SECONDS, _TELL_AFTER_SECONDS = 30.0, 2.0


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


def claim_run_dir(config: Config, chosen: Path) -> Path:
    """run_dir, or a folder that did not exist before: jobs that start in the second that names them get their own."""
    folder, number = chosen, 1
    make_folder(chosen.parent, "run_dir")
    while config.run_dir is None:
        try:
            folder.mkdir()
            break
        except FileExistsError:
            number += 1
            folder = chosen.with_name(f"{chosen.name}_{number}")
        except OSError as error:
            raise UserError(f"run_dir={folder}: cannot make this folder ({error.strerror})") from None
    return folder


def inspect_run_dir(config: Config, run_dir: Path) -> RunState:
    """What the folder holds. Raises UserError where these settings must not go on in it."""
    mirror = config.checkpoint.mirror
    places = [f"run_dir={run_dir}"] + ([f"checkpoint.mirror={mirror}"] if mirror else [])
    with_settings = [place for place in places if (_folder(place) / "config.yaml").exists()]
    for place in places:
        if place not in with_settings and (_folder(place) / "metrics.jsonl").exists() and not with_settings:
            raise UserError(f"{place}: holds records without a config.yaml; choose another folder")
    if not with_settings and config.resume == Resume.must:
        raise UserError(f"resume=must: there is no run to continue in run_dir={run_dir}")
    if not with_settings or starts_over(config, run_dir):
        return RunState.NEW
    for place in with_settings:
        if config.resume == Resume.never:
            raise UserError(f"resume=never: {place} holds another run's records; choose another folder")
        conflicts = resume_conflicts(_recorded(_folder(place)), config)
        if conflicts:
            rule = f"holds a run with other settings: {', '.join(conflicts)}"
            raise UserError(f"{place}: {rule}; choose another folder, or start over with resume=fresh")
    return RunState.FINISHED if _is_finished(config, run_dir) else RunState.UNFINISHED


def finished_line(run_dir: Path) -> str:
    """For the user: there is nothing to do, and why."""
    reason = _summary(run_dir).get("stop_reason")
    state = f"holds a run that stopped early: {reason}" if reason else "holds a finished run"
    longer = "early_stop.patience" if reason else "num_rounds"
    return f"{run_dir} {state}: nothing to do (raise {longer} to go on, or choose another run_dir)"


class RunLock:
    """Held by the server while it lives; a new job waits a while for the old one's to be let go.

    The lock is on the folder itself: the kernel drops it with the process, and no file is left behind.
    """

    def __init__(self, run_dir: Path) -> None:
        make_folder(run_dir, "run_dir")
        self._folder = os.open(run_dir, os.O_RDONLY)
        end, told = time.monotonic() + _OLD_JOB_WAIT_SECONDS, False
        while True:
            try:
                fcntl.flock(self._folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > end:
                    os.close(self._folder)
                    raise UserError(f"run_dir={run_dir}: another job is running in it; wait, or stop it") from None
                if not told and time.monotonic() > end - _OLD_JOB_WAIT_SECONDS + _TELL_AFTER_SECONDS:
                    say(f"waiting for another job that is running in {run_dir}, {_OLD_JOB_WAIT_SECONDS:.0f} s at most")
                    told = True
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


def remove_if_nothing_recorded(run_dir: Path) -> None:
    """Takes away the folder of a job that was refused; one with a round or a checkpoint stays, as does that of another
    job that is running in it."""
    recorded = any(readable_rows(run_dir)) or any(run_dir.glob("checkpoints/*"))
    if run_dir.is_dir() and not recorded and not is_locked(run_dir):
        shutil.rmtree(run_dir, ignore_errors=True)


def _folder(place: str) -> Path:
    return Path(place.partition("=")[2])


def _is_finished(config: Config, run_dir: Path) -> bool:
    """Whether summary.json is of all the rounds that these settings ask for."""
    summary = _summary(run_dir)
    done = summary.get("num_rounds", 0)
    if not isinstance(done, int) or not done:
        return False
    stops_there = summary.get("stopped_early") and done >= EarlyStopping(config, readable_rows(run_dir)).last_round
    return done >= config.num_rounds or bool(stops_there)


def _summary(run_dir: Path) -> dict[str, Any]:
    """summary.json; empty where there is none that can be read."""
    return read_object(run_dir / "summary.json") or {}


def _recorded(folder: Path) -> dict[str, Any]:
    try:
        return read_settings_to_resume(folder / "config.yaml")
    except UserError as error:
        raise UserError(f"{error}; choose another run_dir") from None
