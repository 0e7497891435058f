"""`llcg slurm`: the batch script of a training job, with the resources that its settings ask for.

The script names resources and calls `llcg slurm --run`, which becomes batch_job.sh on the job's first node; so does
launch/slurm.sbatch.
"""

import importlib.resources
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from llcg_dist.cli.launch.slurm import require_slurm_job, run_slurm
from llcg_dist.config.compose import load_config
from llcg_dist.config.own_files import VARIABLE
from llcg_dist.errors import UserError
from llcg_dist.records.console import say

if TYPE_CHECKING:  # it imports torch, which a job that starts need not wait for
    from llcg_dist.cli.launch.slurm_resources import Resources

_DEFAULT_FILE = "llcg.sbatch"
_LONG_NAMES = {
    **{"A": "account", "C": "constraint", "D": "chdir", "G": "gpus", "J": "job-name", "N": "nodes", "a": "array"},
    **{"c": "cpus-per-task", "d": "dependency", "e": "error", "n": "ntasks", "o": "output", "p": "partition"},
    **{"q": "qos", "t": "time", "w": "nodelist", "x": "exclude"},
}
"""sbatch's short options that have a value."""
_SBATCH_TIMEOUT_SECONDS = 120


@dataclass
class Request:
    """The parsed arguments of `llcg slurm`."""

    overrides: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    """Options of sbatch by their long names; empty where they have no value."""
    to: str = ""
    submit: bool = False
    to_stdout: bool = False


def slurm(arguments: Sequence[str]) -> int:
    """Writes, prints or submits the batch script; with --run, becomes the job itself."""
    if arguments and arguments[0] == "--run":
        _become_job(arguments[1:])
    from llcg_dist.cli.launch.slurm_resources import resources_of

    request = parse(arguments)
    config = load_config(request.overrides)
    script = batch_script(request, resources_of(config, _first_number(request.options.get("nodes", ""))))
    if request.to_stdout:
        say(script.rstrip())
        return 0
    if request.to or not request.submit:
        _write(script, Path(request.to or _DEFAULT_FILE))
    if request.submit:
        job = _submit(script)
        say(f"submitted as job {job}: output in slurm-{job}.out, see squeue -j {job}; to stop it: scancel {job}")
    else:
        file = request.to or _DEFAULT_FILE
        say(f"script in {file}; it says what it asks for, and why. Submit it with: sbatch {shlex.quote(file)}")
    return 0


def parse(arguments: Sequence[str]) -> Request:
    """Tells our options, sbatch's and the overrides apart: an override has no dash, the value of an option no `=`."""
    request, words = Request(), list(arguments)
    while words:
        word = words.pop(0)
        if word == "-":
            request.to_stdout = True
        elif word in ("-m", "--multirun"):
            raise UserError(f"{word}: for a sweep on SLURM see llcg train -m hydra/launcher=submitit_slurm")
        elif word == "--submit":
            request.submit = True
        elif not word.startswith("-"):
            request.overrides.append(word)
        else:
            name, value = _option(word, words)
            if name == "to":
                request.to = value
            else:
                request.options[name] = value
    if request.to_stdout and (request.submit or request.to):
        raise UserError("-: prints the script; leave out --submit and --to")
    return request


def _option(word: str, following: list[str]) -> tuple[str, str]:
    """(long name, value) of an option of sbatch; takes the value from the next word where it is not in this one."""
    if long := re.fullmatch(r"--([a-z][\w-]*)(?:=(.*))?", word):
        name, value = long[1], long[2]
    elif (short := re.fullmatch(r"-(\w)=?(.*)", word)) and short[1] in _LONG_NAMES:
        name, value = _LONG_NAMES[short[1]], short[2] or None
    else:
        raise UserError(f"{word}: not an option of sbatch that llcg slurm knows; write its long form, --name=value")
    if value is None and following and "=" not in following[0] and not following[0].startswith("-"):
        value = following.pop(0)
    if not value and name in ("to", *_LONG_NAMES.values()):
        raise UserError(f"{word}: needs a value (llcg slurm --help)")
    return name, value or ""


def _first_number(nodes: str) -> int | None:
    """The least number of nodes in sbatch's --nodes=2 or --nodes=2-4; None where it is not given."""
    if not nodes:
        return None
    number = re.match(r"[1-9]\d*", nodes)
    if not number:
        raise UserError(f"--nodes={nodes}: must be a number of nodes")
    return int(number[0])


def batch_script(request: Request, resources: "Resources") -> str:
    """The text of the script."""
    asked = resources.options() | {name: (value, "") for name, value in request.options.items()}
    lines = [
        "#!/usr/bin/env bash",
        "# A training job on SLURM, written by llcg slurm. Options of sbatch on its command line win over those below,",
        "# arguments after the script are more overrides: sbatch [options] THIS_FILE [overrides]",
        "#",
        *(f"# {line}" for line in resources.explanation()),
    ]
    for name, (value, why) in asked.items():
        lines += [f"# {line}" for line in why.splitlines()]
        lines.append(f"#SBATCH --{name}" + (f"={shlex.quote(value)}" if value else ""))
    lines += ["", f"# Paths in the settings are relative to the folder that it is submitted from ({os.getcwd()})."]
    if folders := os.environ.get(VARIABLE):
        lines.append(f"export {VARIABLE}={shlex.quote(folders)}")
    command = [sys.executable, "-m", "llcg_dist", "slurm", "--run", *request.overrides]
    return "\n".join([*lines, f'exec {shlex.join(command)} "$@"']) + "\n"


def _write(script: str, file: Path) -> None:
    try:
        with file.open("x") as out:
            out.write(script)
    except FileExistsError:
        raise UserError(f"{file}: is there already; remove it, name another with --to FILE, or print with -") from None
    except OSError as error:
        raise UserError(f"--to {file}: cannot be written ({error.strerror})") from None


def _submit(script: str) -> str:
    """Hands the script to sbatch; returns the job's id."""
    if not shutil.which("sbatch"):
        raise UserError("sbatch: not found on this host; submit where SLURM's commands are (llcg slurm --to FILE)")
    done = run_slurm(["sbatch", "--parsable"], _SBATCH_TIMEOUT_SECONDS, script)
    if done.returncode:
        raise UserError(done.stderr.strip() or f"sbatch ended with {done.returncode}")
    return done.stdout.strip().partition(";")[0]


def _become_job(overrides: Sequence[str]) -> None:
    """Replaces this process by the job's script: SLURM's signals reach it under the id of the batch script."""
    require_slurm_job()
    body = importlib.resources.files("llcg_dist.cli.launch") / "batch_job.sh"
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and what is ignored stays so
    os.execvp("bash", ["bash", str(body), sys.executable, *overrides])
