"""A Hydra launcher around another one (basic, joblib, submitit_slurm), which makes a sweep resumable.

It runs each job once and skips those that are finished, builds the parts of all jobs before any of them starts, and
turns the failure of a job into an outcome instead of the end of the sweep.
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher

from llcg_dist.cli.launch.slurm import make_job_key, run_slurm
from llcg_dist.cli.sweep.job import JobOutcome, finished_outcome
from llcg_dist.config.compose import load_config, quoted_override
from llcg_dist.errors import UserError
from llcg_dist.records.console import say

_MAX_NAME_LENGTH = 150
_SCANCEL_TIMEOUT_SECONDS = 60


def job_name(overrides: Sequence[str]) -> str:
    """The folder of a job: algorithm.K=4,seed=1 as in Hydra's override_dirname.

    Characters that a folder's name should not hold are replaced, a long name is cut, and a hash is then added.
    """
    readable = ",".join(sorted(override.removeprefix("++") for override in overrides)) or "job"
    safe = re.sub(r"[^\w.,=+-]", "-", readable)
    if safe == readable and len(safe) <= _MAX_NAME_LENGTH and safe.strip("."):
        return safe
    return f"{safe[:_MAX_NAME_LENGTH]}-{hashlib.sha256(readable.encode()).hexdigest()[:8]}"


class ResumingLauncher(Launcher):
    """Launches the jobs of a sweep that have no outcome yet through the launcher `inner`."""

    def __init__(self, inner: Any, sweep_dir: Path, fixed: Sequence[str]) -> None:
        """`fixed`: overrides that all jobs share; they are left out of the jobs' names."""
        self._inner, self._sweep_dir, self._fixed = inner, sweep_dir, set(fixed)
        self._store_errors: dict[tuple[Any, ...], str] = {}
        """By store of parts: why it could not be built; empty where it was."""
        self.outcomes: dict[str, JobOutcome] = {}
        """The outcome of every job so far, by its name."""

    def setup(self, **arguments: Any) -> None:
        """Part of Hydra's interface; never called, because the inner launcher is set up already."""
        raise NotImplementedError("the launcher inside is set up already")

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Hydra's interface: runs a batch of jobs and returns their outcomes in order."""
        names = [job_name([o for o in overrides if o not in self._fixed]) for overrides in job_overrides]
        pending: dict[str, list[str]] = {}
        for name, overrides in zip(names, job_overrides, strict=True):
            if name not in self.outcomes and name not in pending:
                outcome = self._outcome_without_running(name, list(overrides))
                if outcome is None:
                    pending[name] = [*overrides, quoted_override("hydra.sweep.subdir", name)]
                else:
                    self.outcomes[name] = outcome
                    say(f"{name}: {'already ' if outcome.code == 0 else ''}{outcome}")
        if pending:
            self._launch(pending, initial_job_idx)
        return [
            _job_return(overrides, self.outcomes[name]) for name, overrides in zip(names, job_overrides, strict=True)
        ]

    def _outcome_without_running(self, name: str, overrides: list[str]) -> JobOutcome | None:
        """The outcome of a job that is finished or whose settings are wrong; None where it has to run.

        Builds the job's parts where they are missing.
        """
        from llcg_dist.algorithms.registry import build_algorithm
        from llcg_dist.job.run_dir import RunState, inspect_run_dir

        run_dir = self._sweep_dir / name
        try:
            config = load_config([*overrides, quoted_override("run_dir", str(run_dir))])
            build_algorithm(config).local_steps()
            if inspect_run_dir(config, run_dir) is RunState.FINISHED:
                return finished_outcome(name, run_dir)
            self._ensure_store(config)
        except UserError as error:
            return JobOutcome(name, 2, str(error))
        return None

    def _ensure_store(self, config: Any) -> None:
        """Loads and partitions the graph, once for all jobs that share the parts; a UserError is repeated for each."""
        from llcg_dist.algorithms.registry import build_algorithm
        from llcg_dist.data.partition import ensure_store, store_path

        access = build_algorithm(config).data_access
        key = store_path(config), access, config.algorithm.storage_overhead
        if key not in self._store_errors:
            self._store_errors[key] = ""
            try:
                ensure_store(config, say, access)
            except UserError as error:
                self._store_errors[key] = str(error)
        if self._store_errors[key]:
            raise UserError(self._store_errors[key])

    def _launch(self, pending: dict[str, list[str]], initial_job_idx: int) -> None:
        """Runs jobs, given by name and overrides, through the inner launcher, and stores their outcomes."""
        queue = SlurmQueue(self._inner)
        if queue.used:
            for name in pending:
                make_job_key(self._sweep_dir / name)
        try:
            results = self._inner.launch(list(pending.values()), initial_job_idx=initial_job_idx)
        except Exception as error:  # one job's failure, such as a cancelled SLURM job: the other outcomes still count
            results = queue.wait_for_all()
            if len(results) != len(pending):
                results = [error] * len(pending)
        except BaseException:
            queue.cancel()
            raise
        for name, result in zip(pending, results, strict=True):
            # Not JobReturn.return_value: of a job that raised, it raises again.
            outcome = result._return_value if isinstance(result, JobReturn) else result
            if not isinstance(outcome, JobOutcome):
                outcome = JobOutcome(name, 1, " ".join(str(outcome).split()) or type(outcome).__name__)
            self.outcomes[name] = outcome
            if queue.used:
                say(f"{name}: {outcome}")


class SlurmQueue:
    """The SLURM jobs that submitit submits for a batch after this object was created; none with other launchers."""

    def __init__(self, launcher: Any) -> None:
        self.used = type(launcher).__name__ == "SlurmLauncher"
        self._folder = str(launcher.params["submitit_folder"]) if self.used else ""
        self._earlier_ids = set(self._job_ids())

    def wait_for_all(self) -> list[Any]:
        """Waits for all new jobs; what each of them returned, or the exception with which it failed."""
        import submitit

        results: list[Any] = []
        for job_id in self._new_ids():
            try:
                results.append(submitit.SlurmJob(self._folder, job_id).results()[0])
            except Exception as error:
                results.append(error)
        return results

    def cancel(self) -> None:
        """Cancels all new jobs."""
        if new_ids := self._new_ids():
            run_slurm(["scancel", *new_ids], _SCANCEL_TIMEOUT_SECONDS)

    def _new_ids(self) -> list[str]:
        new_ids = set(self._job_ids()) - self._earlier_ids
        return sorted(new_ids, key=lambda job_id: [int(number) for number in job_id.split("_")])

    def _job_ids(self) -> list[str]:
        """The ids (JOB or ARRAY_INDEX) that have a folder of submitit's."""
        folder = Path(self._folder.replace("%j", ""))
        if not self.used or not folder.is_dir():
            return []
        names = [path.name for path in folder.iterdir() if re.fullmatch(r"\d+(_\d+)?", path.name)]
        arrays = {name.partition("_")[0] for name in names if "_" in name}
        return [name for name in names if name not in arrays]  # an array has a folder too, beside those of its jobs


def _job_return(overrides: Sequence[str], outcome: JobOutcome) -> JobReturn:
    """The outcome in the form that Hydra's sweepers read."""
    result = JobReturn(overrides=list(overrides), status=JobStatus.COMPLETED)
    result.return_value = outcome
    return result
