"""Flower's server and clients as processes that take turns (bench/flower_rounds.py runs in them).

They live in an environment of their own, made at the first run (`.venv-flower`): Flower's protobuf is older than
TensorBoard's.
"""

import os
import subprocess
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.turns import ended, free_port, require_line, wait_for_port, write_line
from llcg_dist.records.console import say

FLOWER = "flwr >=1.41,<1.42"


def has_flower(python: Path) -> bool:
    """Whether this Python imports Flower; the default environment is made if there is none."""
    if not python.exists():
        venv.create(python.parent.parent, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", FLOWER]
        subprocess.run(pip, check=False)
    found = subprocess.run([python, "-c", "import flwr"], capture_output=True).returncode == 0
    if not found:
        say(f"{python} has no Flower (pip install '{FLOWER}'): it is left out")
    return found


@contextmanager
def flower_processes(python: Path, clients: int, sizes: Sequence[int]) -> Iterator[Callable[[str], None]]:
    """`sizes`: of the tensors of the model."""
    program, address = str(Path(__file__).with_name("flower_rounds.py")), f"127.0.0.1:{free_port()}"
    settings = os.environ | {"FLWR_TELEMETRY_ENABLED": "0", "OMP_NUM_THREADS": "1"}
    quiet: dict[str, Any] = {"stderr": subprocess.DEVNULL, "text": True, "env": settings}
    server = [str(python), program, "server", address, str(clients), *map(str, sizes)]
    started = [subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **quiet)]
    wait_for_port(address)
    started += [
        subprocess.Popen([str(python), program, "client", address], stdout=subprocess.DEVNULL, **quiet)
        for _ in range(clients)
    ]
    with ended(started):
        require_line(started[0], "ready")

        def turn(line: str) -> None:
            write_line(started[0].stdin, line)
            require_line(started[0], "ready")

        yield turn
