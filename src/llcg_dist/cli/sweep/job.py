"""Runs one job of a sweep in processes of its own, so that no failure of it can end the sweep; returns its outcome.

A job that needs one process and one thread (loopback, single, server_only) trains in a process forked from a fork
server, which has imported everything once: this saves seconds for each of many small jobs. Any other job starts its
ranks from there as `llcg train` does. On SLURM a job is the elastic agent of its node.
"""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig

from llcg_dist.cli.exit_codes import exit_code_of
from llcg_dist.cli.launch.forked import fork_server
from llcg_dist.config.compose import load_config, quoted_override
from llcg_dist.data.child_process import die_with_parent
from llcg_dist.records.console import ERROR_PREFIX, percent, say
from llcg_dist.records.reading import is_number, read_object

_SHUTDOWN_SECONDS = 20.0
"""How long a job may take to end when the sweep is stopped, before it is killed: its ranks have ten seconds."""


@dataclass(frozen=True)
class JobOutcome:
    """Exit code of a job, the reason of its failure, and its best validation score.

    float(outcome) is the score, which a search (optuna) maximises; of a failed job it raises ValueError.
    """

    name: str
    code: int
    reason: str = ""
    score: float | None = None

    def __float__(self) -> float:
        if self.code or self.score is None:
            raise ValueError(self.reason or "there is no validation score (evaluate.every=0?)")
        return self.score

    def __str__(self) -> str:
        return f"failed: {self.reason}" if self.code else f"done, best val {percent(self.score)} %"


def finished_outcome(name: str, run_dir: Path) -> JobOutcome:
    """The outcome of a finished run, from its summary.json."""
    summary = read_object(run_dir / "summary.json") or {}
    score = summary.get("best_val_score")
    if "best_val_score" not in summary or not (score is None or is_number(score)):
        return JobOutcome(name, 1, f"no readable summary.json in {run_dir}; remove that folder to run the job again")
    return JobOutcome(name, 0, score=score)


def run_job(task_config: Any, on_slurm: bool) -> JobOutcome:
    """Hydra's task function: runs the job of the current HydraConfig. A failure is an outcome, never an exception,
    which would end the sweep."""
    hydra = HydraConfig.get()
    run_dir = Path(hydra.runtime.output_dir)
    name = str(hydra.sweep.subdir)
    overrides = [*hydra.overrides.task, quoted_override("run_dir", str(run_dir))]
    if on_slurm:
        return _run_on_slurm(name, run_dir, overrides)
    say(f"{name}: started")
    console, earlier_size = _console_file(run_dir, "console.log")
    code = _run_in_fork(overrides, console)
    outcome = _outcome(name, run_dir, code, console, earlier_size)
    say(f"{name}: {outcome}")
    return outcome


def _console_file(run_dir: Path, name: str) -> tuple[Path, int]:
    """The file for a job's stdout and stderr, and its present size: what an earlier attempt has printed."""
    path = run_dir / "logs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path, path.stat().st_size


def _run_in_fork(overrides: list[str], console: Path) -> int:
    """Runs the job in a forked process; returns its exit code, or minus the signal that killed it."""
    process = fork_server(threads=1).Process(target=_run_forked_job, args=(overrides, str(console)))
    process.start()
    try:
        process.join()
    except BaseException:  # the sweep is stopped by a signal
        process.terminate()
        process.join(_SHUTDOWN_SECONDS)
        process.kill()
        process.join()
        raise
    return process.exitcode if process.exitcode is not None else 1


def _run_forked_job(overrides: list[str], console: str) -> None:
    """In the forked process: sends its output to the console file, trains, and exits with the exit code."""
    die_with_parent()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the fork server ignores it
    output = os.open(console, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    from llcg_dist.cli.train import train_job

    code = exit_code_of(lambda: train_job(overrides, forked=True))
    sys.stdout.flush()
    os._exit(code)  # not sys.exit: after a failure torch's threads may still wait for ranks that are gone


def _run_on_slurm(name: str, run_dir: Path, overrides: list[str]) -> JobOutcome:
    """Runs the elastic agent of this node. There is one task per node; the job's outcome is that of the first node."""
    from llcg_dist.algorithms.registry import build_algorithm
    from llcg_dist.doctor import num_processes

    config = load_config(overrides)
    ranks = num_processes(config, build_algorithm(config))
    console, earlier_size = _console_file(run_dir, f"console-{os.environ['SLURM_NODEID']}.log")
    command = [sys.executable, "-m", "llcg_dist.cli.launch.slurm", "agent", *overrides]
    with console.open("a") as output:
        agent = subprocess.run(command, stdout=output, stderr=output, env=os.environ | {"LLCG_RANKS": str(ranks)})
    if agent.returncode == 0 and os.environ["SLURM_NODEID"] != "0":
        return JobOutcome(name, 0)  # a node without ranks gets here before the job has written its summary
    return _outcome(name, run_dir, agent.returncode, console, earlier_size)


def _outcome(name: str, run_dir: Path, code: int, console: Path, earlier_size: int) -> JobOutcome:
    """The outcome of a job that has ended; the reason of a failure is the first error line in the console file."""
    if code == 0:
        return finished_outcome(name, run_dir)
    with console.open(errors="replace") as file:
        file.seek(earlier_size)
        errors = [line.partition(ERROR_PREFIX)[2].strip() for line in file if ERROR_PREFIX in line]
    ending = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    return JobOutcome(name, code if code > 0 else 1, errors[0] if errors else f"{ending}; see {console}")
