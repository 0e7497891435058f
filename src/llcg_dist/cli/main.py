"""The entry point `llcg COMMAND [hydra overrides]`: finds the command, runs it, and returns its exit code."""

import os
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from llcg_dist import __version__
from llcg_dist.cli.exit_codes import exit_code_of
from llcg_dist.cli.help import print_usage, show_help
from llcg_dist.cli.settings import asks_for_settings, show_settings
from llcg_dist.cli.usage import USAGE, WITH_SETTINGS
from llcg_dist.config.keys import did_you_mean
from llcg_dist.config.own_files import find_own_files
from llcg_dist.data.host_memory import own_limit
from llcg_dist.errors import UserError
from llcg_dist.records.console import say, table
from llcg_dist.records.starts import COMMAND_VARIABLE

# Commands import what they need when they are called: torch and PyG take seconds to import.


def main() -> None:
    """The console script `llcg`."""
    os.environ[COMMAND_VARIABLE] = shlex.join(["llcg", *sys.argv[1:]])
    if own_limit() is not None:  # Arrow's own allocator reserves a gigabyte at once, as soon as it is imported
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    try:
        code = run(sys.argv[1:])
    except BrokenPipeError:  # the reader of a pipe (head, less) has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is done: while Python ends, an interrupt needs no traceback
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Runs the command line with these arguments in this process; returns the exit code."""
    return exit_code_of(lambda: _run(find_own_files(arguments)))


def _run(arguments: list[str]) -> int:
    commands: dict[str, Callable[[list[str]], int]] = {
        "partition": _partition,
        "train": _train,
        "multinode": _multinode,
        "slurm": _slurm,
        "doctor": _doctor,
        "advise": _advise,
        "report": _report,
        "watch": _watch,
        "predict": _predict,
        "key": _key,
        "help": show_help,
    }
    if not arguments or arguments[0] in ("-h", "--help"):
        say(USAGE)
        return 0 if arguments else 2
    if arguments[0] == "--version":
        say(f"llcg_dist {__version__}")
        return 0
    name, *command_arguments = arguments
    if name not in commands:
        hint = did_you_mean(name, list(commands))
        raise UserError(f"unknown command {name!r}; one of {', '.join(commands)} (llcg --help){hint}")
    if {"-h", "--help"} & set(command_arguments):
        return print_usage(name, command_arguments)
    if name in WITH_SETTINGS and asks_for_settings(command_arguments):
        return show_settings(command_arguments)
    return commands[name](command_arguments)


def _partition(arguments: list[str]) -> int:
    from llcg_dist.cli.partition import partition

    return partition(arguments)


def _train(arguments: list[str]) -> int:
    from llcg_dist.cli.train import train

    return train(arguments)


def _multinode(arguments: list[str]) -> int:
    from llcg_dist.cli.launch.multinode import multinode

    return multinode(arguments)


def _slurm(arguments: list[str]) -> int:
    from llcg_dist.cli.launch.batch_script import slurm

    return slurm(arguments)


def _doctor(arguments: list[str]) -> int:
    from llcg_dist.cli.doctor import doctor

    return doctor(arguments)


def _advise(arguments: list[str]) -> int:
    from llcg_dist.cli.advise import advise

    return advise(arguments)


def _report(paths: list[str]) -> int:
    from llcg_dist.report import write_report

    if not paths:
        raise UserError("report: name at least one run directory, or a folder of them")
    page, results = write_report([Path(path) for path in paths])
    for title, rows in results.items():
        several = any(cell.std is not None for row in rows for cell in row.values())
        say(title + (": mean ± standard deviation over seeds" if several else ""))
        say(table(list(rows[0]), [[cell.text for cell in row.values()] for row in rows]) + "\n")
    say(f"report in {page}")
    return 0


def _watch(arguments: list[str]) -> int:
    from llcg_dist.cli.watch.command import watch

    return watch(arguments)


def _predict(arguments: list[str]) -> int:
    from llcg_dist.predict import predict

    say(f"predictions in {predict(arguments, say)}")
    return 0


def _key(arguments: list[str]) -> int:
    from llcg_dist.cli.key import key

    return key(arguments)


if __name__ == "__main__":
    main()
