"""A new user: a folder with the files of a graph, and the commands that are run in it."""

import shlex
import shutil
from pathlib import Path

from tests.helpers.jobs import Outcome, finish, llcg_in_process, start, start_llcg, wait_for_rounds
from tests.helpers.wordnet import FILES, MASKS, Files

ROUNDS = 80
GRAPH = [*FILES, *MASKS, "dataset.name=verben", "cluster.num_machines=3"]
QUICK = [*GRAPH, "model.hidden=16", "algorithm.K=2", "algorithm.rho=1"]
JOB = [*QUICK, f"num_rounds={ROUNDS}"]
ON_TERMINAL = """
(for _ in $(seq 1200); do [ -e interrupt ] && break; sleep 0.1; done; printf '\\003'; sleep 1) |
script --quiet --return --command {command} terminal.txt
"""
"""A command on a terminal of its own, into which Ctrl-C is typed when the file `interrupt` is there."""


class User:
    """A folder with the files of a graph, and the commands that were run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.files, self.said = folder, Files(folder), dict[str, Outcome]()
        self.files.write()
        self.runs = folder / "runs"

    def llcg(self, *arguments: str) -> str:
        """What a command prints that works."""
        outcome = llcg_in_process(*arguments, cwd=self.folder)
        assert (outcome.code, outcome.err) == (0, ""), outcome
        return outcome.out

    def watch_a_run_and_stop_it(self) -> None:
        """On a terminal, with Ctrl-C; what is left of it is kept in runs/stopped."""
        command = shlex.join(["llcg", "train", *JOB, "checkpoint.keep=1", "run_dir=runs/llcg"])
        typed = start(["bash", "-c", ON_TERMINAL.format(command=shlex.quote(command))], self.folder)
        wait_for_rounds(self.runs / "llcg", 3, typed)
        self.said["watch, running"] = llcg_in_process("watch", "runs/llcg", "--once", cwd=self.folder)
        (self.folder / "interrupt").touch()
        self.said["stopped"] = finish(typed)
        self.said["watch, stopped"] = llcg_in_process("watch", "runs/llcg", "--once", cwd=self.folder)
        shutil.copytree(self.runs / "llcg", self.runs / "stopped")

    def go_on(self) -> None:
        """With the command that was printed; a view of the run ends with it."""
        view = start_llcg("watch", "runs/llcg", "--every=0.2", cwd=self.folder)
        self.said["resumed"] = finish(start(shlex.split(self.advice), self.folder))
        self.said["watch to the end"] = finish(view)

    @property
    def terminal(self) -> str:
        """What stood on the terminal of the run that was stopped."""
        return (self.folder / "terminal.txt").read_text()

    @property
    def advice(self) -> str:
        return self.terminal.partition("go on with: ")[2].splitlines()[0]
