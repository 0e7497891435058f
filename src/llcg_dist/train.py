"""What a rank runs: `torchrun … -m llcg_dist.train [overrides]`. Rank 0 is the server, ranks 1..P are the machines."""

import ctypes
import json
import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import torch

from llcg_dist.algorithms import Algorithm, build_algorithm
from llcg_dist.cli.console import Progress, print_error
from llcg_dist.comm.channel import ServerChannel
from llcg_dist.comm.handshake import agree, offer
from llcg_dist.comm.ledger import Ledger
from llcg_dist.comm.loopback import LoopbackChannel
from llcg_dist.comm.torch_dist import Cluster, DistMachineChannel, DistServerChannel, PeerLostError, choose_backend
from llcg_dist.config import Config, load_config
from llcg_dist.data.partition import ensure_store, store_path
from llcg_dist.data.store import Shard, held_parts, read_shard, write_json
from llcg_dist.engine import run_machine
from llcg_dist.errors import UserError
from llcg_dist.record import choose_run_dir
from llcg_dist.server import Server
from llcg_dist.worker import Machine

log = logging.getLogger("llcg_dist.train")  # __name__ is __main__ in a rank

_WAIT_FOR_CULPRIT = 5.0
"""Seconds a rank that lost its peer stays, so that the launcher sees the dead rank first and names it."""


class Rank:
    """Who this process is, for its messages; the part is known after the handshake."""

    def __init__(self) -> None:
        self.rank = int(os.environ.get("RANK", 0))
        self.part: int | None = None

    def __str__(self) -> str:
        if self.rank == 0:
            return "rank 0 (server)"
        return f"rank {self.rank}" + ("" if self.part is None else f" (part {self.part})")


def main(overrides: Sequence[str]) -> int:
    """Exit code 0, 2 for a user's mistake, 1 for anything else; the reason goes to stderr and to the launcher."""
    _end_with_launcher()
    me = Rank()
    try:
        run(load_config(overrides), me)
    except UserError as error:
        return _fail(str(error), exit_code=2)
    except KeyboardInterrupt:
        return 130
    except PeerLostError as error:
        time.sleep(_WAIT_FOR_CULPRIT)
        return _fail(f"{me}: {error}", exit_code=1)
    except Exception as error:
        log.exception("%s failed", me)
        traceback.print_exc()
        return _fail(f"{me}: {type(error).__name__}: {error}", exit_code=1)
    return 0


def run(config: Config, me: Rank) -> None:
    torch.set_num_threads(config.cluster.threads)
    torch.set_flush_denormal(True)  # denormals slow a step down many times and mean nothing to the result
    algorithm = build_algorithm(config)
    if algorithm.trains_on_parts and config.cluster.backend != "loopback":
        _run_distributed(config, algorithm, me)
    else:
        _run_alone(config, algorithm)


def _run_distributed(config: Config, algorithm: Algorithm, me: Rank) -> None:
    _require_world(1 + config.cluster.num_machines)
    backend = choose_backend(config.cluster.backend, _device(config.cluster.device))
    cluster = Cluster(backend, config.cluster.timeout, Ledger(algorithm.crosses))
    take_part(config, algorithm, cluster, me)
    cluster.close()


def take_part(config: Config, algorithm: Algorithm, cluster: Cluster, me: Rank) -> None:
    """One job in a process group that has been joined already."""
    device = _device(config.cluster.device)
    if cluster.rank == 0:
        _serve(config, algorithm, cluster, device)
    else:
        _work(config, algorithm, cluster, device, me)


def _serve(config: Config, algorithm: Algorithm, cluster: Cluster, device: str) -> None:
    run_dir = choose_run_dir(config)
    store, manifest = ensure_store(config)
    cluster.broadcast_json({"run_dir": str(run_dir)})  # from here on the parts are there to be offered
    whole = read_shard(store / "global")
    offers = cluster.gather_json(offer(config, {}))
    try:
        rank_of_part = agree(offers, whole.store_id, config.cluster.num_machines)
    except UserError as error:
        cluster.broadcast_json({"error": str(error)})
        raise
    cluster.broadcast_json({"rank_of_part": rank_of_part})
    log_to(run_dir / "logs" / "server.log")
    write_json(run_dir / "logs" / "ranks.json", {"rank_of_part": rank_of_part})
    log.info("store %s, rank of each part %s", store, rank_of_part)
    channel = DistServerChannel(cluster, rank_of_part)
    _train(config, algorithm, whole, [part["train_nodes"] for part in manifest["parts"]], channel, run_dir, device)


def _work(config: Config, algorithm: Algorithm, cluster: Cluster, device: str, me: Rank) -> None:
    run_dir = Path(cluster.broadcast_json({})["run_dir"])
    store = store_path(config)
    held = {part: read_shard(store / f"part{part}").store_id for part in _offerable(store, cluster.rank)}
    cluster.gather_json(offer(config, held))
    reply = cluster.broadcast_json({})
    if "error" in reply:
        raise UserError(reply["error"])
    me.part = reply["rank_of_part"].index(cluster.rank)
    log_to(run_dir / "logs" / f"part{me.part}.log")
    graph = read_shard(store / f"part{me.part}").graph
    log.info("%s: %d nodes, %d edges", me, graph.num_nodes, graph.num_edges)
    machine = Machine(config, graph, me.part, algorithm.local_steps(), device)
    run_machine(config.num_rounds, machine.learn, DistMachineChannel(cluster, machine.num_parameters))


def _run_alone(config: Config, algorithm: Algorithm) -> None:
    """Rank 0 is all there is: `single`, `server_only`, and any method on loopback."""
    _require_world(1)
    run_dir = choose_run_dir(config)
    store, manifest = ensure_store(config)
    log_to(run_dir / "logs" / "server.log")
    whole = read_shard(store / "global")
    device = _device(config.cluster.device)
    train_nodes = [part["train_nodes"] for part in manifest["parts"]]
    steps = algorithm.local_steps()
    if algorithm.trains_on_parts:
        graphs = [read_shard(store / f"part{part}").graph for part in range(config.cluster.num_machines)]
    else:
        graphs, train_nodes = ([whole.graph], [sum(train_nodes)]) if any(steps) else ([], [])
    machines = [Machine(config, graph, part, steps, device).learn for part, graph in enumerate(graphs)]
    channel = LoopbackChannel(machines, Ledger(algorithm.crosses), metered=algorithm.trains_on_parts)
    _train(config, algorithm, whole, train_nodes, channel, run_dir, device)


def _train(
    config: Config,
    algorithm: Algorithm,
    whole: Shard,
    train_nodes: list[int],
    channel: ServerChannel,
    run_dir: Path,
    device: str,
) -> None:
    progress = Progress(config)
    server = Server(config, whole.graph, train_nodes, device)
    summary = server.train(algorithm, channel, run_dir, progress.round)
    progress.close(summary, run_dir)


def log_to(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("llcg_dist")
    root.addHandler(handler)
    root.setLevel(logging.INFO)


def _offerable(store: Path, rank: int) -> list[int]:
    """The own part where the disk has it: a rank on a shared disk has no business in the other folders."""
    return [rank - 1] if (store / f"part{rank - 1}" / "graph.json").exists() else held_parts(store)


def _device(requested: str) -> str:
    if requested == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if requested == "cuda" and not torch.cuda.is_available():
        raise UserError("cluster.device=cuda: torch sees no GPU here; use cluster.device=cpu")
    return requested


def _require_world(wanted: int) -> None:
    started = int(os.environ.get("WORLD_SIZE", 1))
    if started != wanted:
        machines = f"a server and {wanted - 1} machines" if wanted > 1 else "rank 0 alone"
        advice = f"use `llcg train`, or torchrun with {wanted} processes in all (--nproc-per-node on one host)"
        raise UserError(
            f"cluster.num_machines: the job is {machines}, but {started} process(es) were started; {advice}"
        )


def _fail(message: str, exit_code: int) -> int:
    """Tells the launcher through torchrun's error file, or the user where no launcher asks for one."""
    print_error(message)
    error_file = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if error_file:
        content = {"message": message, "extraInfo": {"timestamp": str(int(time.time()))}}
        Path(error_file).write_text(json.dumps({"message": content}))
    return exit_code


def _end_with_launcher() -> None:
    """torchrun starts ranks in sessions of their own, where they would outlive a killed launcher."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return
    launcher = os.getppid()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != launcher:  # it died before we asked
        os._exit(1)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.exit(code)
