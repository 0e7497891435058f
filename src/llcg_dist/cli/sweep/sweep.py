"""`llcg train -m`: sweeps over settings with Hydra's sweepers and launchers, in a folder that a sweep can resume in.

    runs/sweeps/<swept keys>_<hash>/         named after the overrides: the same command resumes the sweep
        multirun.yaml                        the sweep's settings, as Hydra records them
        algorithm.K=4,seed=1/                a run directory like any other, with Hydra's own .hydra/

The sweeper (basic, optuna) chooses the jobs, the launcher (basic, joblib, submitit_slurm) runs them. ResumingLauncher,
between the two, runs each job once, partitions its graph before any job starts, and keeps its failure from ending the
sweep.
"""

import functools
import hashlib
import importlib.util
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra._internal.callbacks import Callbacks
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import setup_globals
from hydra.types import HydraContext, RunMode
from omegaconf import OmegaConf, open_dict

from llcg_dist.cli.sweep.job import JobOutcome, run_job
from llcg_dist.cli.sweep.launcher import ResumingLauncher
from llcg_dist.config.compose import may_add, opened_conf, quoted_override, require_one_choice
from llcg_dist.config.explain import explain
from llcg_dist.config.recorded import read_settings
from llcg_dist.data.atomic_files import make_folder
from llcg_dist.errors import UserError
from llcg_dist.job.process import Stopped, install_signal_handlers
from llcg_dist.job.run_dir import RunLock
from llcg_dist.records.console import end_progress_line, print_error, say

_PLUGINS = {
    "hydra/launcher=joblib": ("hydra_joblib_launcher", "joblib"),
    "hydra/launcher=submitit_slurm": ("hydra_submitit_launcher", "slurm"),
    "hydra/sweeper=optuna": ("hydra_optuna_sweeper", "optuna"),
}
"""By override: the Hydra plugin that it needs, and the package's extra that installs it."""

_NOT_IN_ITS_NAME = (
    "hydra/launcher",
    "hydra.launcher.",
    "hydra.sweep.",
    "hydra.sweeper.n_trials",
    "hydra.sweeper.n_jobs",
)
"""Beginnings of overrides that say where and how long a sweep runs: with other values it is still the same sweep."""


def sweep(overrides: Sequence[str]) -> int:
    """Runs a sweep; returns the exit code: 0; 1 where jobs failed; 2 where every job failed by the user's mistake; 130
    or 143 after SIGINT or SIGTERM."""
    install_signal_handlers()
    try:
        return _sweep(list(overrides))
    except Stopped as stopped:
        name = signal.Signals(stopped.signal).name
        end_progress_line()
        print_error(f"stopped by {name}; the same command goes on where the sweep stopped")
        return 128 + stopped.signal


def _sweep(overrides: list[str]) -> int:
    _check_overrides(overrides)
    overrides = [may_add(override) for override in overrides]
    parsed = _parse(overrides)
    require_one_choice(overrides)
    require_swept_once(parsed)
    replaced = replaced_by_axes(parsed)
    overrides = [override for index, override in enumerate(overrides) if index not in replaced]
    parsed = [override for index, override in enumerate(parsed) if index not in replaced]
    fixed = [f"{o.get_key_element()}={o.get_value_element_as_str()}" for o in parsed if not o.is_sweep_override()]
    config, sweeper = _compose(overrides, parsed)
    sweep_dir = Path(config.hydra.sweep.dir)
    make_folder(sweep_dir, "hydra.sweep.dir")
    say(f"sweep in {sweep_dir}")
    with RunLock(sweep_dir):
        OmegaConf.save(config, sweep_dir / "multirun.yaml")
        return _report(_run(sweeper, config, sweep_dir, fixed), sweep_dir)


def _compose(overrides: list[str], parsed: Sequence[Any]) -> tuple[Any, Any]:
    """The sweep's config as Hydra composes it, and its sweeper; whatever Hydra raises becomes a UserError."""
    setup_globals()
    with opened_conf():
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        settings = [*_defaults(overrides, sweep_name(parsed)), *overrides]
        config = hydra.compose_config("config", settings, RunMode.MULTIRUN, with_log_configuration=False)
        context = HydraContext(config_loader=hydra.config_loader, callbacks=Callbacks(config))
        drop_overridden_params(config, parsed)
        on_slurm = str(config.hydra.launcher._target_).endswith(".SlurmLauncher")
        if on_slurm and config.hydra.launcher.tasks_per_node != 1:
            raise UserError("hydra.launcher.tasks_per_node: must be 1; each task starts all ranks of its node")
        task = functools.partial(run_job, on_slurm=on_slurm)
        sweeper = Plugins.instance().instantiate_sweeper(config=config, hydra_context=context, task_function=task)
    return config, sweeper


def _run(sweeper: Any, config: Any, sweep_dir: Path, fixed: list[str]) -> dict[str, JobOutcome]:
    """Runs the sweeper with a ResumingLauncher; returns the outcome of every job, by its name."""
    inner_sweeper = getattr(sweeper, "sweeper", sweeper)  # optuna's plugin wraps the sweeper that holds the launcher
    launcher = inner_sweeper.launcher = ResumingLauncher(inner_sweeper.launcher, sweep_dir, fixed)
    sweeper.validate_batch_is_legal = lambda batch: None  # a job that cannot be composed fails alone
    arguments = OmegaConf.to_container(config.hydra.overrides.task, resolve=False)
    try:
        sweeper.sweep(arguments=arguments)
    except ValueError as error:
        done = [outcome for outcome in launcher.outcomes.values() if not outcome.code]
        if any(outcome.score is not None for outcome in done):
            raise
        if done:
            rule = "searches by validation scores, and no job has one (evaluate.every=0, or no validation nodes)"
            raise UserError(f"hydra/sweeper=optuna: {rule}") from None
        say(f"no job succeeded ({error})")  # optuna raises where there is no best trial
    except Exception as error:
        if launcher.outcomes:
            raise
        raise UserError(explain(error)) from None
    if not launcher.outcomes:
        raise UserError("this sweep has no job: one of its ranges is empty")
    return launcher.outcomes


def _report(outcomes: dict[str, JobOutcome], sweep_dir: Path) -> int:
    """Prints how many jobs are done, the best trial of a search, and every failure; returns the exit code."""
    failed = [outcome for outcome in outcomes.values() if outcome.code]
    say(f"{len(outcomes) - len(failed)} of {len(outcomes)} jobs done, records in {sweep_dir}")
    search_results = sweep_dir / "optimization_results.yaml"
    if search_results.exists():
        best = read_settings(search_results)
        say(f"best: {best.get('best_params')} with {best.get('best_value')}")
    for outcome in failed:
        print_error(f"{outcome.name}: {outcome.reason}")
    if not failed:
        return 0
    return 2 if len(failed) == len(outcomes) and all(outcome.code == 2 for outcome in failed) else 1


def _check_overrides(overrides: list[str]) -> None:
    """Raises a UserError for a run_dir, and for a launcher or sweeper whose plugin is not installed."""
    for override in overrides:
        if override.lstrip("+~").startswith("run_dir"):
            raise UserError(f"{override}: a sweep has a folder for every job; name the sweep's with hydra.sweep.dir=")
        module, extra = _PLUGINS.get(override, ("", ""))
        if module and not _is_installed(module):
            raise UserError(f"{override}: the plugin is not installed; pip install 'llcg_dist[{extra}]'")


def _key(override: Any) -> str:
    return str(override.get_key_element()).lstrip("+~")


def replaced_by_axes(parsed: Sequence[Any]) -> set[int]:
    """The places of values whose key is swept later: that takes their place, as a later value would. Optuna would take
    the key for fixed, and the names of jobs would leave it out."""
    last = {_key(override): place for place, override in enumerate(parsed) if override.is_sweep_override()}
    return {place for place, override in enumerate(parsed) if place < last.get(_key(override), place)}


def require_swept_once(parsed: Sequence[Any]) -> None:
    """Raises UserError for a key that is swept and then given again: Hydra would leave out its jobs without a word."""
    last: dict[str, Any] = {}
    for override in parsed:
        key = _key(override)
        earlier = last.get(key, override)
        last[key] = override
        if earlier.is_sweep_override() and earlier.input_line != override.input_line:
            both = f"{earlier.input_line} and {override.input_line}"
            raise UserError(f"{both}: {key} can be given once; name all its values there, or leave one out")


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(f"hydra_plugins.{module}") is not None
    except ModuleNotFoundError:
        return False


def _parse(overrides: list[str]) -> list[Any]:
    try:
        return list(OverridesParser.create().parse_overrides(overrides))
    except Exception as error:
        raise UserError(explain(error)) from None


def _defaults(overrides: list[str], name: str) -> list[str]:
    """Overrides that precede the user's: no logging of Hydra's own, the sweep's folder, and how optuna searches."""
    given = {override.partition("=")[0].lstrip("+") for override in overrides}
    groups = [group for group in ("hydra/job_logging", "hydra/hydra_logging") if group not in given]
    defaults = [f"{group}=none" for group in groups] + [quoted_override("hydra.sweep.dir", f"runs/sweeps/{name}")]
    if "hydra/sweeper=optuna" in overrides:
        # A job's score is maximised, one job at a time; with a fixed seed a search proposes the same jobs when resumed.
        defaults += ["hydra.sweeper.direction=maximize", "hydra.sweeper.n_jobs=1"]
        defaults += [] if "hydra/sweeper/sampler" in given else ["hydra.sweeper.sampler.seed=0"]
    return defaults


def drop_overridden_params(config: Any, parsed: Sequence[Any]) -> None:
    """Removes the keys that the command line sets from hydra.sweeper.params, which an experiment's file may set.

    Otherwise a job would be named after the experiment's value and run with the command line's.
    """
    params = OmegaConf.select(config, "hydra.sweeper.params")
    with open_dict(config):
        for override in parsed:
            if params is not None:
                params.pop(override.get_key_element().lstrip("+~"), None)


def sweep_name(parsed: Sequence[Any]) -> str:
    """The folder of a sweep: K=1,4_seed=0,1_<hash of the overrides>, the same for the same overrides in any order."""
    lines = sorted(override.input_line for override in parsed)
    hashed = [line for line in lines if not line.startswith(_NOT_IN_ITS_NAME)]
    digest = hashlib.sha256("\n".join(hashed).encode()).hexdigest()[:8]
    swept = [
        f"{override.get_key_element().rpartition('.')[2]}={override.input_line.partition('=')[2]}"
        for override in sorted(parsed, key=lambda override: override.input_line)
        if override.is_sweep_override()
    ]
    readable = re.sub(r"[^\w.,=+-]+", "-", "_".join(swept)).strip("-.")
    return f"{readable[:60] or 'jobs'}_{digest}"
