"""What rank 0 does in any job, with machines or alone: make the server, train, say how it went."""

from pathlib import Path
from typing import Any

from llcg_dist.algorithms import Algorithm
from llcg_dist.comm.channel import ServerChannel
from llcg_dist.config.schema import Config
from llcg_dist.data.cut import correction_nodes
from llcg_dist.data.derived import DataAccess, halo_bytes
from llcg_dist.data.store import Shard
from llcg_dist.errors import UserError
from llcg_dist.job.run_dir import RunState
from llcg_dist.job.server import Server
from llcg_dist.records.console import Progress, say


def build_server(
    config: Config,
    algorithm: Algorithm,
    store: Path,
    whole: Shard,
    manifest: dict[str, Any],
    run_dir: Path,
    start_round: int,
    device: str,
) -> Server:
    train_nodes = [part["train_nodes"] for part in manifest["parts"]]
    checkpoints = checkpoint_folder(config, run_dir)
    nodes = correction_nodes(config.sampling.server_minibatch, whole.graph, whole.extra["assignment"])
    owner = whole.extra["assignment"] if algorithm.trains_on_parts else None
    server = Server(config, whole.graph, train_nodes, run_dir, checkpoints, start_round, device, nodes, owner)
    if algorithm.data_access is DataAccess.PART_AND_HALO:
        server.halo_bytes = sum(halo_bytes(config, store))
    return server


def train_on(server: Server, algorithm: Algorithm, channel: ServerChannel, config: Config, run_dir: Path) -> None:
    progress = Progress(config, server.start_round)
    summary = server.train(algorithm, channel, progress.round)
    progress.close(summary, run_dir)


def checkpoint_folder(config: Config, run_dir: Path) -> Path:
    return Path(config.checkpoint.dir) if config.checkpoint.dir else run_dir / "checkpoints"


def require_resumable(config: Config, state: RunState, start_round: int) -> None:
    if config.resume == "must" and state is RunState.UNFINISHED and start_round == 0:
        raise UserError("resume=must: no round is whole at every rank (checkpoint.dir); use resume=auto to start anew")


def say_finished(run_dir: Path) -> None:
    say(f"{run_dir} holds a finished run: nothing to do (raise num_rounds to go on, or choose another run_dir)")
