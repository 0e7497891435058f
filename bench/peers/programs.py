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
OURS = ("llcg", "llcg_plus", "ggs", "full_sync")


def start_ours(method: str, found: Sequence[Host], run_dir: Path, settings: Sequence[str]) -> list[Job]:
    where = [f"run_dir={run_dir}", f"algorithm={method}"]
    return [multinode(host, found[0], len(found), 1, *settings, *where) for host in found]


def start_peer(name: str, found: Sequence[Host], settings: Settings, theirs: bool) -> list[Job]:
    """On `found`; with `theirs` the batch and learning rate of the peer's own example."""
    program = PEERS[name]
    settings = replace(settings, head=found[0].address)
    if theirs:
        settings = replace(settings, batch=program.batch, lr=program.lr)
    file = Path(settings.out) / "settings.json"
    write_json(file, asdict(settings))
    starts = {"distdgl": _distdgl, "flower": _flower, "ddp": _ddp}
    return starts[name](found, settings, str(file))


def _ddp(found: Sequence[Host], settings: Settings, file: str) -> list[Job]:
    return [_python(host, {}, "bench.peers.ddp", file, str(rank)) for rank, host in enumerate(found)]


def _flower(found: Sequence[Host], settings: Settings, file: str) -> list[Job]:
    """In its environment, which sees the packages of this one behind its own: its protobuf is older."""
    if not has_flower(FLOWER):
        raise SystemExit("bench.peers: Flower could not be installed")
    ours = next(Path(place) for place in sys.path if place.endswith("site-packages"))
    for place in FLOWER.parent.parent.glob("lib/python*/site-packages"):
        (place / "peers.pth").write_text("\n".join({str(ours), *site.getsitepackages()}) + "\n")
    program = "bench.peers.flower"
    return [_python(host, {}, program, file, str(rank), python=FLOWER) for rank, host in enumerate(found)]


def _distdgl(found: Sequence[Host], settings: Settings, file: str) -> list[Job]:
    from bench.peers.distdgl import environment, is_cut

    if not is_cut(settings):
        cutting = start([sys.executable, "-m", "bench.peers.distdgl", file, "cut"], REPOSITORY)
        if cutting.wait(timeout=600):
            raise SystemExit("bench.peers: DGL did not cut the graph")
    addresses = [host.address for host in found]
    jobs = []
    for role in ("server", "trainer"):
        for rank, host in enumerate(found):
            variables = environment(settings, role, rank, addresses)
            jobs.append(_python(host, variables, "bench.peers.distdgl", file, role, str(rank)))
    return jobs


def _python(host: Host, variables: dict[str, str], module: str, *arguments: str, python: Path | None = None) -> Job:
    """A program on a host; what it prints is read where it fails."""
    paths = f"PYTHONPATH={REPOSITORY}:{REPOSITORY / 'src'}"
    interface = [f"GLOO_SOCKET_IFNAME={host.interface}", "FLWR_TELEMETRY_ENABLED=0", paths]
    given = [f"{name}={value}" for name, value in variables.items()]
    command = ["env", *interface, *given, str(python or sys.executable), "-m", module, *arguments]
    return start(host.command(*command), REPOSITORY)
