"""How each program of bench.peers is started on its hosts: the peers' own, and ours."""

import site
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tests.helpers.jobs import REPOSITORY, Job, start
from tests.helpers.netns import Host, multinode

from bench.flower_processes import has_flower
from bench.peers.common import Settings
from llcg_dist.data.atomic_files import write_json

FLOWER = REPOSITORY / ".venv-flower" / "bin" / "python"


@dataclass(frozen=True)
class Program:
    """A peer and the settings that it is run with, beside ours; the better of the two counts."""

    name: str
    has_server: bool
    """Whether a host of its own averages, besides those of the machines."""
    batch: int
    lr: float


PEERS = {
    "distdgl": Program("distdgl", False, batch=1000, lr=0.003),
    "flower": Program("flower", True, batch=32, lr=0.01),
    "ddp": Program("ddp", False, batch=1024, lr=0.001),
}
"""Batch and learning rate of their own examples: DGL's distributed GraphSAGE; Flower's quickstart with our rate, as its
own is for images; PyG's distributed sampling."""
_STEPS_BETWEEN_SCORES = 4
OURS = ("llcg", "llcg_plus", "psgd_pa", "ggs", "full_sync")


def start_ours(method: str, found: Sequence[Host], run_dir: Path, settings: Sequence[str]) -> list[Job]:
    where = [f"run_dir={run_dir}", f"algorithm={method}"]
    return [multinode(host, found[0], len(found), 1, *settings, *where) for host in found]


def start_peer(name: str, found: Sequence[Host], settings: Settings, theirs: bool) -> list[Job]:
    """On `found`; with `theirs` the batch and learning rate of the peer's own example."""
    program = PEERS[name]
    settings = replace(settings, head=found[0].address)
    if theirs:
        settings = replace(settings, batch=program.batch, lr=program.lr)
    if not program.has_server:  # it has no rounds, and its clock stands still: it may be scored at any step
        settings = replace(settings, steps=_STEPS_BETWEEN_SCORES)
    file = Path(settings.out) / "settings.json"
    write_json(file, asdict(settings))
    starts = {"distdgl": _distdgl, "flower": _flower, "ddp": _ddp}
    return starts[name](found, settings, str(file))


def _ddp(found: Sequence[Host], settings: Settings, file: str) -> list[Job]:
    return [_start(host, sys.executable, "ddp", file, str(rank)) for rank, host in enumerate(found)]


def _flower(found: Sequence[Host], settings: Settings, file: str) -> list[Job]:
    """In its environment, which sees the packages of this one behind its own: its protobuf is older."""
    if not has_flower(FLOWER):
        raise SystemExit("bench.peers: Flower could not be installed")
    ours = next(Path(place) for place in sys.path if place.endswith("site-packages"))
    for place in FLOWER.parent.parent.glob("lib/python*/site-packages"):
        (place / "peers.pth").write_text("\n".join({str(ours), *site.getsitepackages()}) + "\n")
    return [_start(host, str(FLOWER), "flower", file, str(rank)) for rank, host in enumerate(found)]


def _distdgl(found: Sequence[Host], settings: Settings, file: str) -> list[Job]:
    from bench.peers.distdgl import environment, is_cut

    if not is_cut(settings):
        cutting = start([sys.executable, "-m", "bench.peers.distdgl", file, "cut"], REPOSITORY)
        if cutting.wait(timeout=600):
            raise SystemExit("bench.peers: DGL did not cut the graph")
    addresses, jobs = [host.address for host in found], []
    for rank, host in enumerate(found):
        both = [
            " ".join(_command(host, environment(settings, role, rank, addresses), "distdgl", file, role, str(rank)))
            for role in ("server", "trainer")
        ]
        # A server shares memory with the trainer of its host, by names that those of all hosts have: each has its own.
        script = f"trap 'kill $(jobs -p)' TERM; mount -t tmpfs none /dev/shm; {both[0]} & {both[1]} & wait"
        jobs.append(start(host.command("unshare", "--mount", "--ipc", "bash", "-c", script), REPOSITORY))
    return jobs


def _start(host: Host, python: str, program: str, *arguments: str) -> Job:
    """A program on a host; what it prints is read where it fails."""
    return start(host.command(*_command(host, {}, program, *arguments, python=python)), REPOSITORY)


def _command(
    host: Host, variables: dict[str, str], program: str, *arguments: str, python: str = sys.executable
) -> list[str]:
    paths = f"PYTHONPATH={REPOSITORY}:{REPOSITORY / 'src'}"
    interface = [f"GLOO_SOCKET_IFNAME={host.interface}", "FLWR_TELEMETRY_ENABLED=0", paths]
    given = [f"{name}={value}" for name, value in variables.items()]
    return ["env", *interface, *given, python, "-m", f"bench.peers.{program}", *arguments]
