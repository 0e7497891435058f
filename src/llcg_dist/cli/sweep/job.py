"""One job of a sweep, in processes of its own, so that nothing it does can end the sweep; its outcome comes back.

A job that needs one process and one thread (loopback, single, server_only) is forked from a server process that has
imported everything once: seconds less for each of many small jobs. Any other starts its ranks as `llcg train` does; on
SLURM it is the elastic agent of its node.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig

from llcg_dist.cli.launch.forked import die_with_fork_server, fork_server
from llcg_dist.config.compose import load_config, quoted_override
from llcg_dist.errors import UserError
from llcg_dist.records.console import percent, print_error, say

_GRACE_SECONDS = 20.0
"""Seconds that a job gets to end in order when the sweep is stopped: its ranks get ten."""
_MARK = "llcg: error: "


@dataclass(frozen=True)
class Outcome:
    """What became of a job. As a number it is what a search maximises."""

    name: str
    code: int
    reason: str = ""
    score: float | None = None

    def __float__(self) -> float:
        if self.code or self.score is None:
            raise ValueError(self.reason or "there is no validation score (evaluate.every=0?)")
        return self.score

    def __str__(self) -> str:
        return f"failed: {self.reason}" if self.code else f"done, best val {percent(self.score)}"


def finished(name: str, run_dir: Path) -> Outcome:
    summary = json.loads((run_dir / "summary.json").read_text())
    return Outcome(name, 0, score=summary["best_val_score"])


def run_job(task_config: Any, on_slurm: bool) -> Outcome:
    """Hydra's task function. Never raises for what a job does: that would end the sweep."""
    hydra = HydraConfig.get()
    run_dir = Path(hydra.runtime.output_dir)
    name = str(hydra.sweep.subdir)
    overrides = [*hydra.overrides.task, quoted_override("run_dir", str(run_dir))]
    if on_slurm:
        return _run_on_slurm(name, run_dir, overrides)
    say(f"{name}: started")
    console, said_before = _console(run_dir, "console.log")
    code = _run_here(overrides, console)
    outcome = _outcome(name, run_dir, code, console, said_before)
    say(f"{name}: {outcome}")
    return outcome


def _console(run_dir: Path, name: str) -> tuple[Path, int]:
    """The file for what a job prints, and how much an earlier attempt left there."""
    path = run_dir / "logs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path, path.stat().st_size


def _run_here(overrides: list[str], console: Path) -> int:
    process = fork_server(threads=1).Process(target=_run_job_in_child, args=(overrides, str(console)))
    process.start()
    try:
        process.join()
    except BaseException:  # the sweep was told to stop
        process.terminate()
        process.join(_GRACE_SECONDS)
        process.kill()
        process.join()
        raise
    return process.exitcode if process.exitcode is not None else 1


def _run_job_in_child(overrides: list[str], console: str) -> None:
    """In the forked process."""
    die_with_fork_server()
    output = os.open(console, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    from llcg_dist.cli.main import train_job

    try:
        code = train_job(overrides, forked=True)
    except UserError as error:
        print_error(str(error))
        code = 2
    except KeyboardInterrupt:
        code = 130
    sys.stdout.flush()
    os._exit(code)  # not sys.exit: as in train.py, torch's threads may still wait for ranks that are gone


def _run_on_slurm(name: str, run_dir: Path, overrides: list[str]) -> Outcome:
    """One task a node: each starts the elastic agent of its node, and the first one's outcome is the job's."""
    from llcg_dist.algorithms import build_algorithm
    from llcg_dist.doctor import num_processes

    config = load_config(overrides)
    ranks = num_processes(config, build_algorithm(config))
    console, said_before = _console(run_dir, f"console-{os.environ['SLURM_NODEID']}.log")
    command = [sys.executable, "-m", "llcg_dist.cli.launch.slurm", "agent", *overrides]
    with console.open("a") as output:
        agent = subprocess.run(command, stdout=output, stderr=output, env=os.environ | {"LLCG_RANKS": str(ranks)})
    if agent.returncode == 0 and os.environ["SLURM_NODEID"] != "0":
        return Outcome(name, 0)  # where none of its ranks run, before the job has ended
    return _outcome(name, run_dir, agent.returncode, console, said_before)


def _outcome(name: str, run_dir: Path, code: int, console: Path, said_before: int) -> Outcome:
    if code == 0:
        try:
            return finished(name, run_dir)
        except (OSError, ValueError, KeyError) as error:
            return Outcome(name, 1, f"no readable summary.json in {run_dir} ({type(error).__name__})")
    with console.open(errors="replace") as file:
        file.seek(said_before)
        errors = [line.partition(_MARK)[2].strip() for line in file if _MARK in line]
    ending = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    return Outcome(name, code if code > 0 else 1, errors[0] if errors else f"{ending}; see {console}")
