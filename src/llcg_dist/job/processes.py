"""A rank in a process of its own: joining the others, the server's links to the machines, and a machine's life."""

import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.comm.audit import Audit
from llcg_dist.comm.codec import Codec
from llcg_dist.comm.control import leave, receive_json, send_json
from llcg_dist.comm.job_key import ranks_key
from llcg_dist.comm.ledger import Ledger
from llcg_dist.comm.liveness import Limits
from llcg_dist.comm.process_transport import ProcessTransport, answer_requests
from llcg_dist.comm.remote_rows import FeatureTraffic, PeerRows
from llcg_dist.comm.resources import RankResources, Ticket
from llcg_dist.comm.torch_dist import Cluster
from llcg_dist.config.cluster import OnLoss
from llcg_dist.config.schema import Config
from llcg_dist.data.atomic_files import write_json
from llcg_dist.data.partition import store_path
from llcg_dist.data.views import RowSource
from llcg_dist.errors import UserError
from llcg_dist.job.checkpoint import CheckpointWriter
from llcg_dist.job.devices import evaluates_beside, has_own_gpu, use_device
from llcg_dist.job.evaluation_process import EvaluationProcess
from llcg_dist.job.handshake import MachineStart
from llcg_dist.job.process import Rank, interrupt, log_to, name_of
from llcg_dist.job.returning import Placed, begin_again
from llcg_dist.records.console import say
from llcg_dist.records.rows import Row


class ProcessHub:
    """This rank's end of a cluster: at the server, its links to the machines; at a machine, its link to the server."""

    def __init__(
        self,
        cluster: Cluster,
        config: Config,
        audit: Audit | None,
        evaluation_process: EvaluationProcess | None,
        me: Rank,
    ) -> None:
        self.cluster, self._audit, self._limits, self._me = cluster, audit, _limits(config), me
        self._goes_on = config.cluster.on_loss == OnLoss.go_on
        if self._goes_on and cluster.rank:  # its end is not the job's: the server watches itself
            self._limits = replace(self._limits, stall=None)
        self.evaluation_process = evaluation_process
        self.device = use_device(config.cluster.device)
        watched = range(1, cluster.size) if cluster.rank == 0 else [0]
        self.watch({rank: name_of(rank, None) for rank in watched})

    @property
    def rank(self) -> int:
        return self.cluster.rank

    @property
    def num_machines(self) -> int:
        return self.cluster.size - 1

    @property
    def ledger(self) -> Ledger:
        return self.cluster.ledger

    def watch(self, names: dict[int, str]) -> None:
        """From here on none of these ranks may be silent or stand still; they may load or train as long as it takes."""
        me = self._me  # not this hub: a thread that watches would keep the links of a job that has failed open
        if self._goes_on and self.rank == 0:  # itself, too: machines cannot end its job
            names = {0: str(me), **names}
        self.cluster.watch(names, self._limits, lambda message: interrupt(message, me), me.supervisor.beat)

    def send(self, content: dict[str, Any], rank: int) -> None:
        send_json(self.cluster, content, rank)

    def receive(self, rank: int) -> dict[str, Any]:
        return receive_json(self.cluster, rank)

    def refuse(self, reason: str) -> None:
        self.cluster.board.refuse(reason)

    def placed(self, placed: Placed) -> None:
        ranks = {"rank_of_part": placed.rank_of_part, "server": self.cluster.server}
        write_json(Path(placed.run_dir) / "logs" / "ranks.json", ranks)
        self.cluster.name_parts({rank: part for part, rank in enumerate(placed.rank_of_part)})
        self._me.names = {rank: name_of(rank, part) for part, rank in enumerate(placed.rank_of_part)}
        if self._goes_on:
            self.cluster.board.publish(asdict(placed), asdict(self.cluster.ticket))
            self.cluster.losses = {}
        self.watch(self._me.names)

    def transport(self, rank_of_part: Sequence[int], codec: Codec) -> ProcessTransport:
        return ProcessTransport(self.cluster, rank_of_part, codec)

    def audit(self, start_round: int) -> Row | None:
        if self._audit is None:
            return None
        verdict = self._audit.take_part(self.cluster)
        if verdict is not None:  # of this start; the ledger also has what earlier ones counted
            verdict["after_round"] = start_round
            if self._audit.passed:
                say(str(self._audit))
        return verdict

    def finished_before(self, run_dir: Path) -> None:
        if self._audit:
            self._audit.recall(run_dir)

    def close(self) -> None:
        """Leaves the cluster together with the other ranks, then raises where the audit failed."""
        if self._goes_on and self.rank == 0:
            self.cluster.board.finish()  # for machines that are about to return
        saved_by_all = leave(self.cluster, CheckpointWriter.saved_by_all())
        if self.rank == 0:
            self._me.supervisor.leaves()
        CheckpointWriter.prune_all(saved_by_all)
        if self.evaluation_process:
            self.evaluation_process.close()
        if self._audit:
            self._audit.require_passed()


def join_cluster(config: Config, algorithm: Algorithm, me: Rank) -> ProcessHub:
    settings = config.cluster
    evaluation_process = EvaluationProcess() if _may_evaluate(config) else None  # before there are connections
    audit = Audit(_limits(config)) if settings.audit else None  # before the first byte
    ledger = Ledger(algorithm.allowed_messages)
    given = me.supervisor.situation.ticket
    ticket = Ticket(**given) if given else None
    cluster = Cluster(settings.backend, settings.join_timeout, ledger, rank_resources(config), ticket)
    if settings.on_loss == OnLoss.go_on and "nccl" in cluster.backend:
        raise UserError("cluster.on_loss=go_on: does not work with NCCL; use cluster.backend=gloo")
    if audit and "nccl" in cluster.backend:
        raise UserError("cluster.audit=true: NCCL's bytes cannot be counted on sockets; use cluster.backend=gloo")
    if audit:
        audit.joined()
    me.joined(cluster.rank, cluster.board)
    me.supervisor.joined(asdict(cluster.ticket))
    if evaluation_process and cluster.rank != 0:
        evaluation_process.close()
        evaluation_process = None
    return ProcessHub(cluster, config, audit, evaluation_process, me)


def _limits(config: Config) -> Limits:
    return Limits(config.cluster.timeout, config.cluster.stall_timeout)


def _may_evaluate(config: Config) -> bool:
    """Whether this rank, which may become the server, then evaluates in a process of its own. The server is the first
    rank of a host (comm/rendezvous.py: pick_server)."""
    threads = len(os.listdir("/proc/self/task"))
    first_here, first = (os.environ.get(name) == "0" for name in ("LOCAL_RANK", "RANK"))
    return first_here and (first or _has_graph(config)) and evaluates_beside(config.evaluate.process, threads)


def _has_graph(config: Config) -> bool:
    return (store_path(config) / "global" / "graph.json").exists()


def rank_resources(config: Config) -> RankResources:
    """This rank's, before it knows any other."""
    ranks_here, device = int(os.environ.get("LOCAL_WORLD_SIZE", 1)), use_device(config.cluster.device)
    return RankResources(
        interface=config.cluster.interface,
        graph=_has_graph(config),
        run=config.run_dir is not None and (Path(config.run_dir) / "config.yaml").exists(),
        key=_key(config),
        own_gpu=has_own_gpu(device, torch.cuda.device_count(), ranks_here),
    )


def _key(config: Config) -> bytes | None:
    """The job's key. A start under plain torchrun without one says what that means, once for all ranks."""
    key = ranks_key(config.cluster)
    if key is None and config.cluster.sealed and os.environ["RANK"] == "0":
        rule = "give cluster.key_file (llcg key FILE), or start it with llcg; cluster.sealed=false accepts it"
        say(f"warning: whoever reaches this job's ports can read and change what its ranks tell each other; {rule}")
    return key


class ProcessEnvironment:
    """What a machine in a process of its own has around it."""

    def __init__(self, hub: ProcessHub, me: Rank) -> None:
        self._hub, self._me = hub, me
        self.device, self.ledger = hub.device, hub.ledger

    def took_part(self, part: int, run_dir: Path) -> None:
        self._me.part = part
        self._hub.cluster.name_parts({self._hub.rank: part})
        log_to(run_dir / "logs" / f"part{part}.log")

    def remote_rows(self, part: int, rank_of_part: list[int], own: Tensor, fetched: FeatureTraffic) -> RowSource:
        group = self._hub.cluster.machine_group({rank: part for part, rank in enumerate(rank_of_part)})
        return PeerRows(group, rank_of_part, own, fetched, self.ledger)


def work(config: Config, algorithm: Algorithm, hub: ProcessHub, me: Rank) -> None:
    """A machine's life: it answers the server's questions, then its requests round by round, until the run is over."""
    start = MachineStart(config, algorithm, ProcessEnvironment(hub, me))
    while start.channel is None:
        reply = start.answer(hub.receive(0))
        if reply is None:
            return
        hub.send(reply, 0)
    if config.cluster.on_loss == OnLoss.go_on:
        me.is_replaceable()
    answer_requests(hub.cluster, start.channel, start.codec)
    hub.audit(0)


def work_again(config: Config, algorithm: Algorithm, hub: ProcessHub, me: Rank) -> None:
    """The life of a machine that takes the place of one that is gone: it builds itself while the others train, and
    answers the server's requests as soon as that has a link to it."""
    me.is_replaceable()
    start, placed = (
        MachineStart(config, algorithm, ProcessEnvironment(hub, me)),
        Placed(**hub.cluster.board.published()),
    )
    part = placed.rank_of_part.index(hub.rank)
    channel = begin_again(start, placed, part)
    if hub.cluster.return_to_server():
        hub.cluster.name_parts({hub.rank: part})
        answer_requests(hub.cluster, channel, start.codec)
