"""The package as a user gets it: a wheel, and an environment that it is installed in."""

import os
import subprocess
import sys
from pathlib import Path

from tests.helpers.jobs import Outcome, finish, start
from tests.release.build import build, copy_checkout


def build_wheel(folder: Path) -> Path:
    return build(sys.executable, copy_checkout(folder / "tree"), "wheel", folder / "wheel")


def build_sdist(folder: Path) -> Path:
    return build(sys.executable, copy_checkout(folder / "tree"), "sdist", folder / "sdist")


def install(wheel: Path, environment: Path) -> Path:
    """Installs it, with its commands, in an environment that has the dependencies of this one; returns its bin/."""
    run([sys.executable, "-m", "venv", "--without-pip", str(environment)], environment.parent)
    python = environment / "bin" / "python"
    run([sys.executable, "-m", "pip", f"--python={python}", "install", "-q", "--no-deps", "--no-index", str(wheel)])
    [packages] = environment.glob("lib/python3*/site-packages")
    # A folder that a .pth file names has its own .pth files ignored: the checkout is not found through it.
    shared = [entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]
    (packages / "dependencies.pth").write_text("\n".join(shared))
    return environment / "bin"


def run_installed(bin_folder: Path, cwd: Path, command: str, *arguments: str, **variables: str) -> Outcome:
    """Runs a command of the environment; nothing of this process's environment leads to the checkout."""
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    kernels = {"LLCG_KERNEL_CACHE": str(bin_folder.parent / "kernels")}
    return finish(start([str(bin_folder / command), *arguments], cwd, inherited | kernels | variables))


def run(command: list[str], cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
