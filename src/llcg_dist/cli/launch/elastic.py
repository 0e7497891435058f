"""Starts the ranks of a job on this host through torchrun's elastic launcher; its outcome becomes an exit code.

The rendezvous is torchrun's c10d rendezvous over a store of our own: the stores that torch would create for the agents
and for the ranks listen on every interface. This store listens on the address of the head alone (127.0.0.1 where the
job has one host), its values are sealed with the job's key, and the ranks use it too.
"""

import contextlib
import json
import math
import os
import re
import shlex
import signal
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from torch.distributed import DistError
from torch.distributed.elastic.multiprocessing import SignalException, Std
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousError,
    RendezvousGracefulExitError,
    RendezvousStateError,
    RendezvousTimeoutError,
)
from torch.distributed.launcher.api import LaunchConfig

from llcg_dist.cli.launch import rendezvous
from llcg_dist.cli.launch.agent import run_agent
from llcg_dist.cli.launch.failures import report_failure, report_launcher_error
from llcg_dist.cli.launch.forked import fork_server, run_rank
from llcg_dist.cli.launch.hosts import Hosts, JobStore
from llcg_dist.cli.launch.joining import Joining
from llcg_dist.cli.launch.log_files import LogFiles
from llcg_dist.cli.launch.torch_logging import silence_torchrun
from llcg_dist.comm.job_key import KEY_VARIABLE, hold_key, launchers_key
from llcg_dist.comm.job_store import ignored_values
from llcg_dist.comm.network import route_to
from llcg_dist.comm.running_job import Place
from llcg_dist.config.cluster import ClusterConfig, OnLoss
from llcg_dist.config.compose import quoted_override
from llcg_dist.config.own_files import CONFIG_DIR, own_presets
from llcg_dist.data.atomic_files import make_folder
from llcg_dist.errors import UserError
from llcg_dist.job.devices import forks_ranks, gpu_here, threads_per_rank
from llcg_dist.job.process import raise_lost_again
from llcg_dist.job.supervisor import TICKET_VARIABLE
from llcg_dist.records.console import end_progress_line, print_error, say

_SHUTDOWN_SECONDS = 10
"""How long ranks may take to end after SIGTERM before they are killed."""
_SIGNALS_OF_AGENT = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""What torch's elastic agent installs handlers for, unless its variable says otherwise."""
_HANDLED_VARIABLE = "TORCHELASTIC_SIGNALS_TO_HANDLE"


def launch(
    num_processes: int, cluster: ClusterConfig, run_dir: Path, overrides: Sequence[str], hosts: Hosts | None = None
) -> int:
    """Starts this host's ranks, waits for them, and returns the exit code; a failure is reported in one line.

    Where this host loses the connection to the head, it joins the job again, `hosts.attempts` times in all.
    """
    silence_torchrun()
    _keep_ignoring_hangup()
    raise_lost_again(SignalException)
    rendezvous.register()
    key = launchers_key(cluster)
    threads = threads_per_rank(cluster.threads, num_processes)
    os.environ["OMP_NUM_THREADS"] = str(threads)
    make_folder(run_dir, "run_dir")
    variables = {KEY_VARIABLE: hold_key(key)}
    entrypoint, arguments = _entrypoint(cluster, threads, _with_run_dir(overrides, run_dir), variables)

    def attempt(job_store: JobStore) -> int:
        place = _place(num_processes, cluster, job_store, hosts)
        for known in (variables, os.environ):
            known.pop(TICKET_VARIABLE, None)
            known.update({TICKET_VARIABLE: json.dumps(place.ticket)} if place else {})
        config = _launch_config(num_processes, cluster, job_store, run_dir, hosts, place)
        return _run_agent(lambda: run_agent(config, entrypoint, arguments), config, run_dir)

    code = _attempts(attempt, hosts, key)
    if code > 128:
        again = "the same command on every host goes on" if hosts else f"go on with: {resuming(overrides, run_dir)}"
        end_progress_line()
        print_error(f"stopped by {signal.Signals(code - 128).name}; {again}")
    return code


def _attempts(attempt: Callable[[JobStore], int], hosts: Hosts | None, key: bytes | None) -> int:
    """The exit code of the first attempt that does not end because this host has to join again."""
    left = hosts.attempts if hosts else 1
    while True:
        job_store, code = JobStore(hosts, key), 128
        try:
            code = attempt(job_store)
            if ignored := ignored_values(job_store.store):
                say(f"warning: {ignored}; someone else reaches the store (llcg help security)")
            return code
        except rendezvous.MeetAgainError:
            say("the job starts anew, with all hosts; this one joins them")
        except (RendezvousError, DistError):  # the head cannot be reached any more
            left -= 1
            if not left:
                print_error("this host lost the job's head; its own message may say why")
                return 1
            print_error("this host lost the job's head; joining again")
        finally:
            job_store.leave(wait_for_others=code < 128)  # where it has not ended by a signal, or joins again


def resuming(overrides: Sequence[str], run_dir: Path) -> str:
    """The command that goes on in the run directory, as it is typed into a shell."""
    *others, named = _with_run_dir([word for word in overrides if word != "resume=fresh"], run_dir)
    plain = re.fullmatch(r"[\w./-]+", str(run_dir))  # what Hydra reads as it stands needs no quotes
    presets = [word for folder in own_presets() for word in (CONFIG_DIR, str(folder))]
    return shlex.join(["llcg", "train", *presets, *others, f"run_dir={run_dir}" if plain else named])


def _keep_ignoring_hangup() -> None:
    """Under nohup a job outlives its terminal; torch's handler would end it with that."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        handled = [signal_.name for signal_ in _SIGNALS_OF_AGENT if signal_ is not signal.SIGHUP]
        os.environ.setdefault(_HANDLED_VARIABLE, ",".join(handled))


@contextlib.contextmanager
def _signal_handlers_restored() -> Iterator[None]:
    """The elastic agent leaves handlers behind that raise: a signal that comes after its end must not meet them."""
    handlers = {signal_: signal.getsignal(signal_) for signal_ in _SIGNALS_OF_AGENT}
    try:
        yield
    finally:
        for signal_, handler in handlers.items():
            signal.signal(signal_, handler)


def _with_run_dir(overrides: Sequence[str], run_dir: Path) -> list[str]:
    """The overrides with `run_dir` in place of any run_dir among them."""
    others = [override for override in overrides if not override.lstrip("+").startswith("run_dir=")]
    return [*others, quoted_override("run_dir", str(run_dir))]


def _entrypoint(
    cluster: ClusterConfig, threads: int, overrides: list[str], variables: dict[str, str]
) -> tuple[Callable[..., None] | str, list[Any]]:
    """What a rank runs, and its arguments: a function in a forked process, or a new `python -m llcg_dist.train`.

    `variables`: of its environment, among them where it opens the job's key (comm/job_key.py).
    """
    if forks_ranks(cluster.start, cluster.device, gpu_here()):
        fork_server(threads)
        return run_rank, [overrides, variables]
    os.environ.update(variables)
    return sys.executable, ["-m", "llcg_dist.train", *overrides]


def _place(num_processes: int, cluster: ClusterConfig, job_store: JobStore, hosts: Hosts | None) -> Place | None:
    """What this host takes over of a job that runs; None: it meets the others."""
    if hosts is None or hosts.parts is None or job_store.is_head or cluster.on_loss != OnLoss.go_on:
        return None
    backend = rendezvous.Backend(job_store.store, hosts.job)
    joining = Joining(job_store.store, job_store.attendance, num_processes, hosts.parts, cluster.timeout)
    with contextlib.suppress(RendezvousClosedError):  # the job has failed, which is said where the hosts meet
        return joining.place(lambda: rendezvous.hosts_meet(backend))
    return None


def _launch_config(
    num_processes: int,
    cluster: ClusterConfig,
    job_store: JobStore,
    run_dir: Path,
    hosts: Hosts | None,
    place: Place | None,
) -> LaunchConfig:
    """The settings of torchrun's elastic agent on this host.

    On one host rank 0 keeps the terminal, and the output of the machines goes to run_dir/logs/torchrun. On several
    hosts, where any process may become the server, all ranks keep stdout, and their stderr goes to those files.
    """
    log_dir = run_dir / "logs" / "torchrun" / (hosts.name if hosts else "")
    log_dir.mkdir(parents=True, exist_ok=True)
    redirects = {rank: Std.ERR if hosts else Std.ALL if rank else Std.NONE for rank in range(num_processes)}
    count = hosts.count if hosts else 1
    return LaunchConfig(
        min_nodes=count,
        max_nodes=count,
        nproc_per_node=len(place.ranks) if place else num_processes,
        run_id=hosts.job if hosts else uuid.uuid4().hex[:8],
        rdzv_backend=rendezvous.BACKEND,
        rdzv_endpoint="{}:{}".format(*job_store.address),
        rdzv_configs={
            "store": job_store.store,
            "address": job_store.address,
            "join_timeout": math.ceil(cluster.join_timeout),
            "goes_on": hosts is not None and cluster.on_loss == OnLoss.go_on,
            "place": place,
        },
        local_addr=route_to(job_store.address[0]),
        max_restarts=0 if place else cluster.max_restarts,  # what fails then has a reason that stays
        shutdown_timeout=_SHUTDOWN_SECONDS,
        start_method="forkserver",
        logs_specs=LogFiles(log_dir, redirects),
    )


def _run_agent(run: Callable[[], None], config: LaunchConfig, run_dir: Path) -> int:
    """Runs the elastic agent until the ranks have ended; reports a failure in one line and returns the exit code, which
    is 128 and the signal's number where one stopped it."""
    several_hosts = config.max_nodes > 1
    try:
        with _signal_handlers_restored():
            run()
    except ChildFailedError as failed:
        return report_failure(*failed.get_first_failure(), run_dir, rank_0_has_terminal=not several_hosts)
    except SignalException as stopped:
        return 128 + int(stopped.sigval)
    except RendezvousTimeoutError:
        limit = f"within cluster.join_timeout={config.rdzv_configs['join_timeout']} s; start the same command on each"
        ignored = ignored_values(config.rdzv_configs["store"])
        print_error(f"the {config.max_nodes} hosts did not all come to {config.rdzv_endpoint} {limit}{ignored}")
        return 2
    except RendezvousStateError as error:
        print_error(f"{error}; either cluster.sealed differs between hosts, or a stranger reaches the store")
        return 1
    except UserError as error:
        if several_hosts:  # on one host rank 0 has printed it
            print_error(str(error))
        return 2
    except (RendezvousClosedError, RendezvousGracefulExitError):
        print_error("another host has ended the job; its own message says why")
        return 1
    except (RendezvousError, DistError):  # the head cannot be reached any more
        raise
    except Exception as error:  # the agent's own: what it raises where it cannot start or watch its ranks
        return report_launcher_error(error, run_dir)
    return 0
