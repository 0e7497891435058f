"""Starts the ranks of a job on this host through torchrun's elastic launcher; its outcome becomes an exit code.

The rendezvous is torchrun's c10d one, over a store of ours: torch's own would listen on every interface, and a second
one for the ranks too. Ours listens on the head's address alone (127.0.0.1 where the job has one host), and the ranks
use the same one.
"""

import json
import logging
import math
import os
import sys
import uuid
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from torch.distributed import DistError
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException, Std
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousError,
    RendezvousGracefulExitError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    RendezvousTimeoutError,
)
from torch.distributed.elastic.rendezvous import rendezvous_handler_registry as registry
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import DynamicRendezvousHandler, RendezvousTimeout
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from llcg_dist.cli.launch.forked import fork_server, run_rank
from llcg_dist.cli.launch.hosts import STORE_TIMEOUT, Hosts, Meeting
from llcg_dist.comm.network import listen_on, route_to
from llcg_dist.comm.rendezvous import swapped_rank
from llcg_dist.comm.torch_dist import REFUSED, host_store
from llcg_dist.config.compose import quoted_override
from llcg_dist.config.schema import ClusterConfig
from llcg_dist.data.atomic_files import make_folder
from llcg_dist.errors import UserError
from llcg_dist.job.devices import forks_ranks, gpu_here, threads_per_rank
from llcg_dist.job.process import name_of
from llcg_dist.records.console import print_error

_GRACE_SECONDS = 10
"""Seconds that ranks get to end by themselves before they are killed."""


def launch(
    num_processes: int, cluster: ClusterConfig, run_dir: Path, overrides: Sequence[str], hosts: Hosts | None = None
) -> int:
    """Starts this host's ranks, waits for them, and says in one line what went wrong.

    On one host rank 0 keeps the terminal and speaks for itself; what the machines print goes to run_dir/logs/torchrun.
    On several, where any process may become the server, stdout is everyone's and errors go to the files.
    """
    _silence_torchrun()
    registry.register(_Backend.name, _rendezvous)
    threads = threads_per_rank(cluster.threads, num_processes)
    os.environ["OMP_NUM_THREADS"] = str(threads)
    log_dir = run_dir / "logs" / "torchrun" / (hosts.name if hosts else "")
    make_folder(run_dir, "run_dir")
    log_dir.mkdir(parents=True, exist_ok=True)
    redirects = {rank: Std.ERR if hosts else Std.ALL if rank else Std.NONE for rank in range(num_processes)}
    settings = [*overrides, quoted_override("run_dir", str(run_dir))]
    entrypoint: Callable[..., None] | str = sys.executable
    arguments: list[Any] = ["-m", "llcg_dist.train", *settings]
    if forks_ranks(cluster.start, cluster.device, gpu_here()):
        fork_server(threads)
        entrypoint, arguments = run_rank, [settings]
    for attempt in range(hosts.attempts if hosts else 1):
        if attempt:
            print_error("this host lost the job's head; joining again")
        meeting = Meeting(hosts) if hosts else None
        store = meeting.store if meeting else host_store(listen_on("127.0.0.1", 0), STORE_TIMEOUT)
        config = LaunchConfig(
            min_nodes=hosts.count if hosts else 1,
            max_nodes=hosts.count if hosts else 1,
            nproc_per_node=num_processes,
            run_id=hosts.job if hosts else uuid.uuid4().hex[:8],
            rdzv_backend=_Backend.name,
            rdzv_endpoint=f"{store.host}:{store.port}",
            rdzv_configs={"store": store, "join_timeout": math.ceil(cluster.join_timeout)},
            local_addr=route_to(store.host),
            max_restarts=cluster.max_restarts,
            shutdown_timeout=_GRACE_SECONDS,
            start_method="forkserver",
            logs_specs=DefaultLogsSpecs(log_dir=str(log_dir), redirects=redirects),
        )
        try:
            code = _run_agent(elastic_launch(config, entrypoint), config, arguments, run_dir)
        except (RendezvousError, DistError):  # the head cannot be reached any more
            continue
        if meeting:
            meeting.leave(in_haste=code >= 128)
        return code
    print_error("this host lost the job's head; its own message may say why")
    return 1


def _run_agent(agent: elastic_launch, config: LaunchConfig, arguments: list[Any], run_dir: Path) -> int:
    several = config.max_nodes > 1
    try:
        agent(*arguments)
    except ChildFailedError as failed:
        return _report(failed, run_dir, rank_0_has_spoken=not several)
    except SignalException as stopped:
        print_error(f"stopped by {stopped.sigval.name}")
        return 128 + int(stopped.sigval)
    except RendezvousTimeoutError:
        limit = f"within cluster.join_timeout={config.rdzv_configs['join_timeout']} s; start the same command on each"
        print_error(f"the {config.max_nodes} hosts did not all come to {config.rdzv_endpoint} {limit}")
        return 2
    except UserError as error:
        if several:
            print_error(str(error))
        return 2
    except (RendezvousClosedError, RendezvousGracefulExitError):
        print_error("another host has ended the job; its own message says why")
        return 1
    return 0


class _Backend(C10dRendezvousBackend):
    name = "llcg"


class _Rendezvous(DynamicRendezvousHandler):
    def next_rendezvous(self) -> RendezvousInfo:
        """Unless the ranks have said that no start of the job can work: a user's mistake is not tried again."""
        if self._store.check([REFUSED]):
            raise UserError(self._store.get(REFUSED).decode())
        return super().next_rendezvous()


def _rendezvous(parameters: RendezvousParameters) -> RendezvousHandler:
    store = parameters.config["store"]
    handler = _Rendezvous.from_backend(
        parameters.run_id,
        store,
        _Backend(store, parameters.run_id),
        parameters.min_nodes,
        parameters.max_nodes,
        parameters.local_addr,
        RendezvousTimeout(join=timedelta(seconds=parameters.config["join_timeout"])),
    )
    # As if it had made its store for the ranks already: it would listen on every interface.
    handler._shared_tcp_store_server = store
    handler._bootstrap_store_info = RendezvousStoreInfo(store.host, store.port)
    return handler


def _silence_torchrun() -> None:
    """We report failures ourselves, in one line. Its loggers carry levels of their own, so each is told."""
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(("torch.distributed", "torch.multiprocessing")):
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _report(failed: ChildFailedError, run_dir: Path, rank_0_has_spoken: bool) -> int:
    """One line from the rank that failed first."""
    rank, failure = failed.get_first_failure()
    told = failure.error_file and Path(failure.error_file).exists()
    if not told:
        how = f"was killed by {failure.signal_name()}" if failure.exitcode < 0 else f"ended with {failure.exitcode}"
        print_error(f"{_name(rank, run_dir)} {how}; its log is under {run_dir / 'logs'}")
    elif rank != 0 or not rank_0_has_spoken:
        print_error(str(json.loads(Path(failure.error_file).read_text())["message"]["message"]))
    return 2 if failure.exitcode == 2 else 1


def _name(torchrun_rank: int, run_dir: Path) -> str:
    """As the ranks call themselves, where their records are on this host's disk."""
    known = run_dir / "logs" / "ranks.json"
    if not known.exists():
        return name_of(torchrun_rank, None)
    ranks = json.loads(known.read_text())
    rank = swapped_rank(torchrun_rank, ranks["server"])
    return name_of(rank, ranks["rank_of_part"].index(rank) if rank else None)
