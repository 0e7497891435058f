"""`llcg train [-m] [overrides]`: checks a job and starts its ranks on this host, or sweeps over many jobs (-m)."""

from pathlib import Path

from llcg_dist.cli.launch.forked import fork_server
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.errors import UserError
from llcg_dist.job.devices import forks_ranks, gpu_here
from llcg_dist.records.console import say


def train(arguments: list[str]) -> int:
    """Trains one job, or with -m (--multirun) one for each combination of settings; returns the exit code."""
    overrides = [argument for argument in arguments if argument not in ("-m", "--multirun")]
    if len(overrides) < len(arguments):
        from llcg_dist.cli.sweep.sweep import sweep

        return sweep(overrides)
    return train_job(overrides)


def train_job(overrides: list[str], forked: bool = False) -> int:
    """Checks a job, starts its ranks and waits for them; returns the exit code.

    `forked`: this process was forked for this job alone, so that a job of one rank may train in it.
    """
    config = load_config(overrides)
    if not forked and forks_ranks(config.cluster.start, config.cluster.device, gpu_here()) and config.cluster.threads:
        fork_server(config.cluster.threads)  # imports what the ranks need while the job is checked
    num_processes, run_dir = prepare_job(config)
    if num_processes == 0:
        return _report_finished(config, run_dir)
    if forked and num_processes == config.cluster.threads == 1 and config.cluster.max_restarts == 0:
        from llcg_dist.train import main as run_rank

        return run_rank(overrides)
    from llcg_dist.cli.launch.elastic import launch
    from llcg_dist.job.run_dir import claim_run_dir, remove_if_nothing_recorded

    existed = config.run_dir is not None and run_dir.exists()
    run_dir = claim_run_dir(config, run_dir)
    code = launch(num_processes, config.cluster, run_dir, overrides)
    if code == 2 and not existed:
        remove_if_nothing_recorded(run_dir)
    return code


def prepare_job(config: Config) -> tuple[int, Path]:
    """Checks a job, and builds its parts where they are missing; returns the number of its processes and its run_dir.

    The number is 0 where the run is finished already. Every mistake that can be found before processes start is raised
    here as a UserError, so that it is reported once and in one line.
    """
    from llcg_dist.algorithms.registry import build_algorithm
    from llcg_dist.data.partition import ensure_store
    from llcg_dist.doctor import ERROR, WARN, check_job, num_processes
    from llcg_dist.doctor.host import this_host
    from llcg_dist.job.run_dir import RunState, choose_run_dir, inspect_run_dir
    from llcg_dist.records.loggers import require_installed

    require_installed(config)
    algorithm = build_algorithm(config)
    algorithm.local_steps()
    run_dir = choose_run_dir(config)
    if inspect_run_dir(config, run_dir) is RunState.FINISHED:
        return 0, run_dir
    store, manifest = ensure_store(config, say, algorithm.data_access)
    findings = check_job(config, algorithm, store, manifest, this_host(config.cluster.interface))
    for finding in findings:
        if finding.level == ERROR:
            raise UserError(finding.line)
        if finding.level == WARN:
            say(f"warning: {finding.line}")
    return num_processes(config, algorithm), run_dir


def _report_finished(config: Config, run_dir: Path) -> int:
    """Says that the run is finished; with cluster.audit a run whose audit failed still fails."""
    from llcg_dist.job.run_dir import finished_line

    say(finished_line(run_dir))
    if config.cluster.audit:
        from llcg_dist.comm.audit import recorded_verdict, require_passed

        require_passed(recorded_verdict(run_dir))
    return 0
