"""`llcg COMMAND [hydra overrides]`."""

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING
from pathlib import Path

from llcg_dist import __version__
from llcg_dist.cli.help import describe
from llcg_dist.cli.launch.forked import fork_server
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.errors import TrainingError, UserError
from llcg_dist.job.devices import forks_ranks, gpu_here
from llcg_dist.records.console import print_error, say, table

_USAGE = """usage: llcg COMMAND [key=value ...]

  llcg partition   cut the graph into parts and write them to partition.root
                   --share 0,2 --to FOLDER: also copy what the host of machines 0 and 2 needs (server: the whole graph)
  llcg train       train: validates, cuts the graph if needed, starts 1+P processes
  llcg doctor      say what would keep a job from working, what it needs and sends, before anything starts
  llcg train -m    sweep: one job for each combination of key=a,b,c (docs/launch.md)
  llcg report      compare runs or sweeps in tables, figures and one HTML page: llcg report PATH...
  llcg predict     write class and probability per node: llcg predict run_dir=RUN

Settings are Hydra overrides: groups (algorithm=psgd_pa, model=gcn, partition=random) and keys (algorithm.K=16).
`llcg train --help` lists them all."""


def main() -> None:
    try:
        code = run(sys.argv[1:])
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    commands: dict[str, Callable[[list[str]], int]] = {
        "partition": _partition,
        "train": _train,
        "doctor": _doctor,
        "report": _report,
        "predict": _predict,
    }
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        say(_USAGE)
        return 0 if arguments else 2
    if arguments[0] == "--version":
        say(f"llcg_dist {__version__}")
        return 0
    command, *rest = arguments
    if command not in commands:
        print_error(f"unknown command {command!r}; one of {', '.join(commands)} (llcg --help)")
        return 2
    if {"-h", "--help"} & set(rest):
        _help(command)
        return 0
    try:
        return commands[command](rest)
    except UserError as error:
        print_error(str(error))
        return 2
    except MemoryError as error:
        print_error(f"not enough memory ({error}); use a smaller graph (dataset.subset), or a host with more")
        return 2
    except TrainingError as error:
        print_error(str(error))
        return 1
    except KeyboardInterrupt:
        print_error("stopped by SIGINT")
        return 130


def _partition(arguments: list[str]) -> int:
    from llcg_dist.algorithms import build_algorithm
    from llcg_dist.cli.parts import print_parts
    from llcg_dist.data.partition import ensure_store
    from llcg_dist.data.share import write_share

    overrides, share, target = _take_share(arguments)
    config = load_config(overrides)
    store, manifest = ensure_store(config, say, build_algorithm(config).data_access)
    print_parts(manifest)
    say(f"parts in {store}")
    if share:
        say(f"share of {share} in {write_share(store, manifest['num_parts'], share.split(','), Path(target))}")
    return 0


def _take_share(arguments: list[str]) -> tuple[list[str], str, str]:
    """--share 0,2 --to FOLDER, apart from the overrides; empty where they are not there."""
    rest, found = list(arguments), {"--share": "", "--to": ""}
    for flag in found:
        if flag in rest:
            at = rest.index(flag)
            found[flag] = rest[at + 1] if at + 1 < len(rest) else ""
            del rest[at : at + 2]
    if bool(found["--share"]) != bool(found["--to"]) or {"--share", "--to"} & set(arguments) and not found["--to"]:
        raise UserError("llcg partition: --share PARTS and --to FOLDER go together, e.g. --share 0,2 --to /mnt/host2")
    return rest, found["--share"], found["--to"]


def _train(arguments: list[str]) -> int:
    overrides = [argument for argument in arguments if argument not in ("-m", "--multirun")]
    if len(overrides) < len(arguments):
        from llcg_dist.cli.sweep.sweep import sweep

        return sweep(overrides)
    return train_job(overrides)


def train_job(overrides: list[str], forked: bool = False) -> int:
    """`forked`: the caller made a process for this job, which may train in it where one is enough."""
    config = load_config(overrides)
    if not forked and forks_ranks(config.cluster.start, config.cluster.device, gpu_here()) and config.cluster.threads:
        fork_server(config.cluster.threads)  # imports what the ranks need while the job is checked
    # Everything that can be found wrong before processes start is found here, so that it ends in one line.
    num_processes, run_dir = check_job(config)
    if num_processes == 0:
        say(f"{run_dir} holds a finished run: nothing to do (raise num_rounds to go on, or choose another run_dir)")
        if config.cluster.audit:
            from llcg_dist.comm.audit import recorded_verdict, require_passed

            require_passed(recorded_verdict(run_dir))
        return 0
    if forked and num_processes == config.cluster.threads == 1 and config.cluster.max_restarts == 0:
        from llcg_dist.train import main as train_alone

        return train_alone(overrides)
    from llcg_dist.cli.launch.elastic import launch

    existed = run_dir.exists()
    code = launch(num_processes, config.cluster, run_dir, _without_run_dir(overrides))
    if code == 2 and not existed:
        shutil.rmtree(run_dir, ignore_errors=True)
    return code


def check_job(config: Config) -> tuple[int, Path]:
    """Builds the parts where they are missing; returns how many processes to start, and the run's folder.

    No process where the run is finished already.
    """
    from llcg_dist.algorithms import build_algorithm
    from llcg_dist.data.partition import ensure_store
    from llcg_dist.doctor import ERROR, WARN, num_processes
    from llcg_dist.doctor import check_job as examine_job
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
    findings = examine_job(config, algorithm, store, manifest, this_host(config.cluster.interface))
    for finding in findings:
        if finding.level == ERROR:
            raise UserError(finding.line)
        if finding.level == WARN:
            say(f"warning: {finding.line}")
    return num_processes(config, algorithm), run_dir


def _without_run_dir(overrides: list[str]) -> list[str]:
    return [override for override in overrides if not override.lstrip("+").startswith("run_dir=")]


def _doctor(arguments: list[str]) -> int:
    from llcg_dist.cli.doctor import doctor

    return doctor(arguments)


def _report(paths: list[str]) -> int:
    from llcg_dist.report import write_report

    if not paths:
        raise UserError("report: name at least one run directory, or a folder of them")
    page, results = write_report([Path(path) for path in paths])
    for title, rows in results.items():
        say(f"{title}: mean ± standard deviation over seeds")
        say(table(list(rows[0]), [[cell.text for cell in row.values()] for row in rows]) + "\n")
    say(f"report in {page}")
    return 0


def _predict(arguments: list[str]) -> int:
    from llcg_dist.predict import predict

    say(f"predictions in {predict(arguments, say)}")
    return 0


def _help(command: str) -> None:
    if command == "predict":
        from llcg_dist.predict import USAGE

        say(USAGE)
        return
    if command == "doctor":
        from llcg_dist.cli.doctor import USAGE as OF_DOCTOR

        say(OF_DOCTOR)
        return
    say(_USAGE)
    if command == "report":
        return
    say("\nGroups:")
    for line in _groups():
        say(f"  {line}")
    say("\nKeys:")
    for key, type_name, default, text in describe():
        shown = "" if default is MISSING or default == "???" else f" = {default}"
        say(f"  {key}{shown} ({type_name})" + (f"\n      {text}" if text else ""))


def _groups() -> list[str]:
    import importlib.resources

    conf = Path(str(importlib.resources.files("llcg_dist.conf")))
    folders = sorted(path for path in conf.iterdir() if path.is_dir() and list(path.glob("*.yaml")))
    return [f"{folder.name}={'|'.join(_choices(folder))}" for folder in folders]


def _choices(group: Path) -> list[str]:
    """Choices by name; of a folder with many of them, the number."""
    names = sorted(file.stem for file in group.glob("*.yaml"))
    for folder in sorted(path for path in group.iterdir() if path.is_dir()):
        within = sorted(f"{folder.name}/{file.stem}" for file in folder.glob("*.yaml"))
        names += (
            within if len(within) <= 5 else [f"{folder.name}/... ({len(within)}, see conf/{group.name}/{folder.name})"]
        )
    return names


if __name__ == "__main__":
    main()
