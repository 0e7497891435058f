"""Builds the source distribution and the wheel as pip does, offline. Imports nothing but the standard library."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_BUILD = """
import sys
from setuptools import build_meta
getattr(build_meta, f"build_{sys.argv[1]}")(sys.argv[2])
sys.exit("the build imported torch" if "torch" in sys.modules else 0)
"""


def checkout_files() -> list[str]:
    """All files of the checkout that git knows or would add, by their paths below it."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted({name for name in listed if name and (ROOT / name).is_file()})


def copy_checkout(to: Path) -> Path:
    """A copy to build from: a build folder that is left in the checkout would add its old files."""
    for name in checkout_files():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, to / name)
    return to


def build(python: Path | str, tree: Path, kind: str, out: Path) -> Path:
    """The archive of this kind (sdist, wheel) of the files in `tree`; needs nothing but the setuptools of `python`."""
    command = [str(python), "-c", _BUILD, kind, str(out)]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"no {kind} from {tree}: {done.stdout}{done.stderr}")
    [path] = out.iterdir()
    return path


def unpack(sdist: Path, to: Path) -> Path:
    """The folder of the files in a source distribution."""
    to.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "-xzf", sdist, "-C", to], check=True)
    [tree] = to.iterdir()
    return tree
