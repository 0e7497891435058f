"""`llcg COMMAND [hydra overrides]`."""

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING
from pathlib import Path
from typing import Any

from llcg_dist import __version__
from llcg_dist.cli.console import percent, print_error, say, table
from llcg_dist.cli.help import describe
from llcg_dist.config import load_config
from llcg_dist.errors import UserError
from llcg_dist.schema import Config

_USAGE = """usage: llcg COMMAND [key=value ...]

  llcg partition   cut the graph into parts and write them to partition.root
  llcg train       train: validates, cuts the graph if needed, starts 1+P processes
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
    except KeyboardInterrupt:
        print_error("stopped by SIGINT")
        return 130


def _partition(overrides: list[str]) -> int:
    from llcg_dist.data.partition import ensure_store

    config = load_config(overrides)
    store, manifest = ensure_store(config, say)
    _print_parts(manifest)
    say(f"parts in {store}")
    return 0


def _train(overrides: list[str]) -> int:
    config = load_config(overrides)
    # Everything that can be found wrong before processes start is found here, so that it ends in one line.
    num_processes, run_dir = _check_job(config)
    if num_processes == 0:
        say(f"{run_dir} holds a finished run: nothing to do (raise num_rounds to go on, or choose another run_dir)")
        return 0
    from llcg_dist.cli.launch import launch

    existed = run_dir.exists()
    code = launch(num_processes, config.cluster, run_dir, _without_run_dir(overrides))
    if code == 2 and not existed:
        shutil.rmtree(run_dir, ignore_errors=True)
    return code


def _check_job(config: Config) -> tuple[int, Path]:
    """Builds the parts where they are missing; returns how many processes to start, and the run's folder.

    No process where the run is finished already.
    """
    from llcg_dist.algorithms import build_algorithm
    from llcg_dist.data.partition import ensure_store
    from llcg_dist.loggers import require_installed
    from llcg_dist.run_dir import RunState, choose_run_dir, examine

    require_installed(config)
    algorithm = build_algorithm(config)
    algorithm.local_steps()
    run_dir = choose_run_dir(config)
    if examine(config, run_dir) is RunState.FINISHED:
        return 0, run_dir
    ensure_store(config, say)
    alone = not algorithm.trains_on_parts or config.cluster.backend == "loopback"
    return (1 if alone else 1 + config.cluster.num_machines), run_dir


def _without_run_dir(overrides: list[str]) -> list[str]:
    return [override for override in overrides if not override.lstrip("+").startswith("run_dir=")]


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


def _print_parts(manifest: dict[str, Any]) -> None:
    from llcg_dist.data.partition import label_skew

    rows = [
        [
            f"part {p}",
            f"{part['nodes']:,}",
            f"{part['edges']:,}",
            f"{part['train_nodes']:,}",
            f"{part['cut_edges']:,}",
            percent(label_skew(part["label_counts"], manifest["label_counts"])),
            f"{part['bytes'] / 1e6:.1f}",
        ]
        for p, part in enumerate(manifest["parts"])
    ]
    say(table(["", "nodes", "edges", "train nodes", "cut edges", "label skew %", "MB"], rows))
    share = manifest["cut_edges"] / max(1, manifest["num_edges"])
    say(f"{manifest['cut_edges']:,} of {manifest['num_edges']:,} edges are cut ({100 * share:.1f} %)")


def _help(command: str) -> None:
    if command == "predict":
        from llcg_dist.predict import USAGE

        say(USAGE)
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
