"""Starts the ranks of a job on this host through torchrun's elastic launcher; its outcome becomes an exit code.

The rendezvous is torchrun's c10d one, over a store of ours: torch's own would listen on every interface, and a second
one for the ranks too. Ours listens on the head's address alone (127.0.0.1 where the job has one host), and the ranks
use the same one.
"""

import json
import logging
import os
import sys
import uuid
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException, Std
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous import RendezvousHandler, RendezvousParameters, RendezvousStoreInfo
from torch.distributed.elastic.rendezvous import rendezvous_handler_registry as registry
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import create_handler
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from llcg_dist.cli.console import print_error
from llcg_dist.comm.devices import threads_per_rank
from llcg_dist.comm.network import listen_on
from llcg_dist.comm.rendezvous import exchanged
from llcg_dist.comm.torch_dist import host_store
from llcg_dist.config import quoted_override
from llcg_dist.data.store import make_folder
from llcg_dist.process import name_of
from llcg_dist.schema import ClusterConfig

_GRACE = 10
"""Seconds that ranks get to end by themselves before they are killed."""


def launch(num_processes: int, cluster: ClusterConfig, run_dir: Path, overrides: Sequence[str]) -> int:
    """Rank 0 keeps the terminal; what the machines print goes to run_dir/logs/torchrun."""
    _silence_torchrun()
    registry.register(_Backend.name, _rendezvous)
    os.environ["OMP_NUM_THREADS"] = str(threads_per_rank(cluster.threads, num_processes))
    log_dir = run_dir / "logs" / "torchrun"
    make_folder(run_dir, "run_dir")
    log_dir.mkdir(parents=True, exist_ok=True)
    quiet = {rank: Std.ALL for rank in range(1, num_processes)}
    store = host_store(listen_on("127.0.0.1", 0), timedelta(seconds=60))
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=num_processes,
        run_id=uuid.uuid4().hex[:8],
        rdzv_backend=_Backend.name,
        rdzv_endpoint=f"{store.host}:{store.port}",
        rdzv_configs={"store": store},
        local_addr="127.0.0.1",
        max_restarts=cluster.max_restarts,
        shutdown_timeout=_GRACE,
        logs_specs=DefaultLogsSpecs(log_dir=str(log_dir), redirects={0: Std.NONE, **quiet}),
    )
    try:
        elastic_launch(config, sys.executable)(
            "-m", "llcg_dist.train", *overrides, quoted_override("run_dir", str(run_dir))
        )
    except ChildFailedError as failed:
        return _report(failed, run_dir)
    except SignalException as stopped:
        print_error(f"stopped by {stopped.sigval.name}")
        return 128 + int(stopped.sigval)
    return 0


class _Backend(C10dRendezvousBackend):
    name = "llcg"


def _rendezvous(parameters: RendezvousParameters) -> RendezvousHandler:
    store = parameters.config["store"]
    handler = create_handler(store, _Backend(store, parameters.run_id), parameters)
    # As if it had made its store for the ranks already: it would listen on every interface.
    handler._shared_tcp_store_server = store
    handler._bootstrap_store_info = RendezvousStoreInfo(store.host, store.port)
    return handler


def _silence_torchrun() -> None:
    """We report failures ourselves, in one line. Its loggers carry levels of their own, so each is told."""
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("torch.distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _report(failed: ChildFailedError, run_dir: Path) -> int:
    """One line from the rank that failed first. Rank 0 has the terminal and has already spoken for itself."""
    rank, failure = failed.get_first_failure()
    told = failure.error_file and Path(failure.error_file).exists()
    if not told:
        how = f"was killed by {failure.signal_name()}" if failure.exitcode < 0 else f"ended with {failure.exitcode}"
        print_error(f"{_name(rank, run_dir)} {how}; its log is under {run_dir / 'logs'}")
    elif rank != 0:
        print_error(str(json.loads(Path(failure.error_file).read_text())["message"]["message"]))
    return 2 if failure.exitcode == 2 else 1


def _name(torchrun_rank: int, run_dir: Path) -> str:
    """As the ranks call themselves, where their records are on this host's disk."""
    known = run_dir / "logs" / "ranks.json"
    if not known.exists():
        return name_of(torchrun_rank, None)
    ranks = json.loads(known.read_text())
    rank = exchanged(torchrun_rank, ranks["server"])
    return name_of(rank, ranks["rank_of_part"].index(rank) if rank else None)
