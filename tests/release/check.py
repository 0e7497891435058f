"""The package as others get it: builds it, checks it, and tries it in an empty environment outside the checkout.

    make release-check [PYTHON=python3.12] [RELEASE=FOLDER]

The source distribution is built from the files of the checkout, and the wheel from the source distribution. Each is
installed and tried with what a new user does: the demo with two rounds, `llcg doctor`, and one of the examples. FOLDER
is kept, with its environment, for the next time; without it all is removed at the end. Imports nothing but the standard
library: it runs under the Python that the environment is made of.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.release.build import ROOT, build, copy_checkout, unpack

LIMIT_SECONDS = 3600
EXAMPLE = "own_dataset.py"
WRITTEN = ("runs/demo/report/index.html", "runs/demo/report/curves.png", "runs/demo/llcg/model.pt")
_INSTALLED = """
import importlib.metadata, llcg_dist as package
torch = importlib.metadata.version("torch").partition("+")[0]
print(torch, package.__version__, importlib.metadata.version("llcg_dist"), package.__file__)
"""


class Environment:
    """A virtual environment in `folder`, and what is run in it.

    Both archives are tried in the same one: it is emptied of llcg_dist in between, but not of the dependencies, which
    take minutes and gigabytes to install and are the same for both.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        if not (self.bin / "python").exists():
            run([sys.executable, "-m", "venv", str(folder)], folder.parent)
        self.pip("install", "setuptools", "packaging")  # to build and to check, not to run

    def pip(self, command: str, *arguments: str) -> None:
        pinned = ["-c", str(ROOT / "constraints.txt")] if command == "install" else []
        quiet = ["-q", "--disable-pip-version-check"]
        run([str(self.bin / "python"), "-m", "pip", command, *quiet, *pinned, *arguments], self.folder.parent)

    def run(self, cwd: Path, *command: str) -> str:
        """As a user whose home is the folder `cwd`; nothing of this process's environment leads to the checkout."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LLCG", "MAKE"))}
        own = {"PATH": f"{self.bin}:{kept['PATH']}", "HOME": str(cwd), "XDG_CACHE_HOME": str(cwd / ".cache")}
        return run([*command], cwd, kept | own | {"OMP_NUM_THREADS": "1"})


def main() -> None:
    with work_folder(sys.argv[1:]) as work:
        environment = Environment(work / "env")
        python = environment.bin / "python"
        with step("build the source distribution and, from it, the wheel"):
            checkout = copy_checkout(work / "checkout")
            sdist = build(python, checkout, "sdist", work / "sdist")
            tree = unpack(sdist, work / "unpacked")
            wheel = build(python, tree, "wheel", work / "wheel")
        with step("check the files and the metadata of both"):
            run([str(python), "-m", "tests.release.archives", str(checkout), str(sdist), str(wheel)], ROOT)
        for archive, options in ((wheel, []), (sdist, ["--no-deps", "--no-build-isolation"])):
            with step(f"install {archive.name}"):
                environment.pip("uninstall", "-y", "llcg_dist")
                environment.pip("install", *options, str(archive))
                environment.pip("check")
            try_it(environment, tree, work / f"user-{archive.suffix[1:]}")
        version = ".".join(map(str, sys.version_info[:2]))
        print(f"release-check: {wheel.name} and {sdist.name} are good on Python {version}")


def try_it(environment: Environment, tree: Path, folder: Path) -> None:
    """What a new user does with the installed package, in a folder with the demo's launcher and an example."""
    (folder / "launch").mkdir(parents=True)
    shutil.copy(tree / "launch" / "demo.sh", folder / "launch")
    shutil.copy(tree / "examples" / EXAMPLE, folder)
    with step("llcg --version"):
        torch, *versions, place = environment.run(folder, "python", "-c", _INSTALLED).split()
        pinned = f"torch=={torch}" in (tree / "constraints.txt").read_text().splitlines()
        require(pinned, f"torch {torch} is installed, which constraints.txt does not name")
        require(Path(place).is_relative_to(environment.folder), f"llcg_dist comes from {place}")
        said = environment.run(folder, "llcg", "--version").split()[-1]
        require({*versions} == {said}, f"the version is {said} and {versions}")
    with step("the demo with two rounds"):
        environment.run(folder, "bash", "launch/demo.sh", "num_rounds=2")
        require(all((folder / name).exists() for name in WRITTEN), f"the demo has not written all of {WRITTEN}")
    with step("llcg doctor"):
        environment.run(folder, "llcg", "doctor")
    with step(f"python {EXAMPLE}"):
        require("test score" in environment.run(folder, "python", EXAMPLE), f"{EXAMPLE} does not print a score")


@contextlib.contextmanager
def work_folder(arguments: list[str]) -> Iterator[Path]:
    """The folder that was named, of which the environment alone is kept from the last time; or one for this time."""
    if not arguments:
        with tempfile.TemporaryDirectory(prefix="llcg-release-") as folder:
            yield Path(folder)
        return
    work = Path(arguments[0]).resolve()
    require(not work.is_relative_to(ROOT), f"RELEASE={work}: must lie outside the checkout")
    work.mkdir(parents=True, exist_ok=True)
    for name in ("checkout", "sdist", "unpacked", "wheel", "user-whl", "user-gz"):
        shutil.rmtree(work / name, ignore_errors=True)
    yield work


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    print(f"release-check: {what} ...", end=" ", flush=True)
    started = time.monotonic()
    yield
    print(f"{time.monotonic() - started:.0f} s", flush=True)


def run(command: list[str], cwd: Path, environment: dict[str, str] | None = None) -> str:
    """What the command prints; ends with all that it said where it fails."""
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=LIMIT_SECONDS)
    except BaseException as error:  # it has processes of its own, which must not outlive the check
        os.killpg(process.pid, signal.SIGTERM)
        require(not isinstance(error, subprocess.TimeoutExpired), str(error))
        raise
    require(process.returncode == 0, f"{' '.join(command)}: exit code {process.returncode}\n{said}")
    return said


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        sys.exit(f"\nrelease-check: {otherwise}")


if __name__ == "__main__":
    main()
