"""Between Hydra's sweeper and its launcher: each job once, its parts cut before any starts, its failure its own."""

import hashlib
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher

from llcg_dist.cli.sweep.job import Outcome, finished
from llcg_dist.config.compose import load_config, quoted_override
from llcg_dist.errors import UserError
from llcg_dist.records.console import say

_LONGEST_NAME = 150


def job_name(overrides: Sequence[str]) -> str:
    """algorithm.K=4,seed=1 as Hydra's override_dirname has it; a hash stands in for what no folder's name can hold."""
    readable = ",".join(sorted(overrides)) or "job"
    safe = re.sub(r"[^\w.,=+-]", "-", readable)
    if safe == readable and len(safe) <= _LONGEST_NAME and safe.strip("."):
        return safe
    return f"{safe[:_LONGEST_NAME]}-{hashlib.sha256(readable.encode()).hexdigest()[:8]}"


class ResumingLauncher(Launcher):
    def __init__(self, inner: Any, sweep_dir: Path, fixed: Sequence[str]) -> None:
        self._inner, self._sweep_dir, self._fixed = inner, sweep_dir, set(fixed)
        self._prepared: dict[tuple[Any, ...], str] = {}
        self.outcomes: dict[str, Outcome] = {}
        """Of every job so far, by its name."""

    def setup(self, **arguments: Any) -> None:
        raise NotImplementedError("the launcher inside is set up already")

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        names = [job_name([o for o in overrides if o not in self._fixed]) for overrides in job_overrides]
        todo: dict[str, list[str]] = {}
        for name, overrides in zip(names, job_overrides, strict=True):
            if name not in self.outcomes and name not in todo:
                known = self._examine(name, list(overrides))
                if known is None:
                    todo[name] = [*overrides, quoted_override("hydra.sweep.subdir", name)]
                else:
                    self.outcomes[name] = known
                    say(f"{name}: {'already ' if known.code == 0 else ''}{known}")
        if todo:
            self._launch(todo, initial_job_idx)
        return [_returned(overrides, self.outcomes[name]) for name, overrides in zip(names, job_overrides, strict=True)]

    def _examine(self, name: str, overrides: list[str]) -> Outcome | None:
        """What is known of a job without running it: that it is done, or that it cannot work."""
        from llcg_dist.algorithms import build_algorithm
        from llcg_dist.job.run_dir import RunState, inspect_run_dir

        run_dir = self._sweep_dir / name
        try:
            config = load_config([*overrides, quoted_override("run_dir", str(run_dir))])
            build_algorithm(config).local_steps()
            if inspect_run_dir(config, run_dir) is RunState.FINISHED:
                return finished(name, run_dir)
            self._prepare(config)
        except UserError as error:
            return Outcome(name, 2, str(error))
        return None

    def _prepare(self, config: Any) -> None:
        """The graph is loaded and cut here, once for all jobs that share it."""
        from llcg_dist.algorithms import build_algorithm
        from llcg_dist.data.partition import ensure_store, store_path

        reads = build_algorithm(config).data_access
        what = store_path(config), reads, config.algorithm.storage_overhead
        if what not in self._prepared:
            self._prepared[what] = ""
            try:
                ensure_store(config, say, reads)
            except UserError as error:
                self._prepared[what] = str(error)
        if self._prepared[what]:
            raise UserError(self._prepared[what])

    def _launch(self, todo: dict[str, list[str]], initial_job_idx: int) -> None:
        queue = SlurmQueue(self._inner)
        try:
            returned = self._inner.launch(list(todo.values()), initial_job_idx=initial_job_idx)
        except Exception as error:  # a job on SLURM that was cancelled, say: the others' outcomes count all the same
            returned = queue.wait_for_all()
            if len(returned) != len(todo):
                returned = [error] * len(todo)
        except BaseException:
            queue.cancel()
            raise
        for name, result in zip(todo, returned, strict=True):
            # Not return_value: of a job that raised, it raises again.
            value = result._return_value if isinstance(result, JobReturn) else result
            if not isinstance(value, Outcome):
                value = Outcome(name, 1, " ".join(str(value).split()) or type(value).__name__)
            self.outcomes[name] = value
            if queue.used:
                say(f"{name}: {value}")


class SlurmQueue:
    """The SLURM jobs that submitit makes of a batch; empty for the other launchers."""

    def __init__(self, launcher: Any) -> None:
        self.used = type(launcher).__name__ == "SlurmLauncher"
        self._folder = str(launcher.params["submitit_folder"]) if self.used else ""
        self._before = set(self._found())

    def wait_for_all(self) -> list[Any]:
        """What each job returned, or the exception that says why it did not."""
        import submitit

        results: list[Any] = []
        for number in self._new():
            try:
                results.append(submitit.SlurmJob(self._folder, number).results()[0])
            except Exception as error:
                results.append(error)
        return results

    def cancel(self) -> None:
        if new := self._new():
            subprocess.run(["scancel", *new], capture_output=True, timeout=60)

    def _new(self) -> list[str]:
        return sorted(set(self._found()) - self._before, key=lambda number: [int(n) for n in number.split("_")])

    def _found(self) -> list[str]:
        folder = Path(self._folder.replace("%j", ""))
        if not self.used or not folder.is_dir():
            return []
        names = [path.name for path in folder.iterdir() if re.fullmatch(r"\d+(_\d+)?", path.name)]
        arrays = {name.partition("_")[0] for name in names if "_" in name}
        return [name for name in names if name not in arrays]  # an array has a folder of its own beside its jobs'


def _returned(overrides: Sequence[str], outcome: Outcome) -> JobReturn:
    result = JobReturn(overrides=list(overrides), status=JobStatus.COMPLETED)
    result.return_value = outcome
    return result
