"""Sections of where a job runs and what it leaves on disk: checkpoint, cluster."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from llcg_dist.config.algorithm import AUTO
from llcg_dist.config.section import Section


class Backend(StrEnum):
    auto = "auto"
    gloo = "gloo"
    nccl = "nccl"
    loopback = "loopback"


class Device(StrEnum):
    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class StartMethod(StrEnum):
    auto = "auto"
    fork = "fork"
    spawn = "spawn"


class OnLoss(StrEnum):
    fail = "fail"
    go_on = "go_on"


class LatePolicy(StrEnum):
    drop = "drop"
    damp = "damp"


@dataclass
class CheckpointConfig(Section):
    section: ClassVar[str] = "checkpoint"

    every: int = 1
    """Save every N rounds and at the end; 0 turns checkpoints off."""
    keep: int = 2
    """How many checkpoints of each rank a run leaves; while it goes on there are those besides that some rank lacks."""
    dir: str | None = None
    """Folder of the checkpoints; default <run_dir>/checkpoints. May be a disk of each host's own."""
    mirror: str | None = None
    """A second folder, of this run alone and on another disk: ranks keep a copy of what they need to go on there."""

    def check(self) -> None:
        super().check()
        self.at_least(0, "every")
        self.at_least(1, "keep")


@dataclass
class ClusterConfig(Section):
    section: ClassVar[str] = "cluster"

    num_machines: int = 4
    """P, the number of parts and of local machines."""
    backend: Backend = Backend.auto
    """auto, gloo, nccl, or loopback (all machines in one process, for tests and sweeps; same bits)."""
    device: Device = Device.auto
    """auto, cpu or cuda; ranks of a host take its GPUs in turn."""
    interface: str | None = None
    """Network interface of the ranks; default: lo on one host, else the one that leads to the job's head."""
    start: StartMethod = StartMethod.auto
    """How `llcg train` starts ranks: fork (from one process that has imported everything), spawn (each imports for
    itself), or auto (fork unless the ranks may use a GPU)."""
    threads: int = 1
    """CPU threads of each rank; 0 shares the host's cores among its ranks (the bits depend on the number)."""
    server_threads: int | str = AUTO
    """CPU threads of an evaluation at the server, or auto: the cores that the machines on its host leave free, and at
    least `threads`; in a job of one process, or with model=own, `threads`. No bit of our models depends on it."""
    timeout: float = 120.0
    """Seconds a rank may be silent (not: a round may take) before the job fails and names it."""
    stall_timeout: float | None = 1800.0
    """Seconds a rank may be alive and not move on (a step, a chunk of an evaluation, a block of a file) before the job
    fails and names it; waiting for another rank does not count. null: as long as it takes."""
    join_timeout: float = 600.0
    """Seconds to wait for all ranks to join and to be ready."""
    max_restarts: int = 0
    """How often a failed job is started again; it goes on from its last whole checkpoint."""
    on_loss: OnLoss = OnLoss.fail
    """What the loss of a machine means, which dies, is cut off or stalls: fail (the job ends), or go_on (the others go
    on, and it takes its part again when it is back; llcg help faults)."""
    stand_in: bool = True
    """With on_loss=go_on: whether the server takes the local steps of parts that have no machine, on the full graph."""
    deadline: float | None = None
    """With on_loss=go_on: a round ends without machines that take longer than this multiple of what the median machine
    takes by the rounds before; default: they are waited for."""
    late: LatePolicy = LatePolicy.damp
    """What becomes of the update of a machine that a round has ended without: drop (nothing), or damp (it joins the
    round after it has come, with 1/(1+age) of its weight, age in rounds)."""
    min_machines: int = 1
    """With on_loss=go_on: the job fails where fewer machines than this are left."""
    max_returns: int = 8
    """With on_loss=go_on: how often each machine is started again after it has died."""
    script: str | None = None
    """With cluster.backend=loopback: a run's metrics.jsonl; parts that it lost are lost in the same rounds again."""
    sealed: bool = True
    """Whether messages, and values of the job's store, are sealed with the job's key (llcg help security)."""
    key_file: str | None = None
    """File with the job's key, from `llcg key FILE`, the same on every host; default: on one host a fresh key."""
    audit: bool = False
    """Compare the ledger with the bytes that the kernel counted on the job's sockets; a difference fails the job."""
    link_mbit: float | None = None
    """Mbit/s of each rank's link in the cluster that cluster_seconds speaks of; default: an exchange takes no time."""

    def check(self) -> None:
        super().check()
        self.at_least(1, "num_machines")
        self.at_least(0, "max_restarts", "max_returns", "threads")
        self.at_most(1024, "threads")  # more would crash inside a library, without a message that helps
        self.positive("timeout", "stall_timeout", "join_timeout", "link_mbit")
        count = self.server_threads
        fits = count == AUTO or (isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= 1024)
        self.require(fits, "server_threads", "must be auto, or a whole number from 1 to 1,024")
        rules = {
            Backend.loopback: "cluster.backend=loopback opens no sockets; use cluster.backend=gloo",
            Backend.nccl: "not all of NCCL's bytes pass through sockets that the kernel counts; use gloo",
        }
        self.require(
            self.sealed or not self.key_file, "key_file", "has no use with cluster.sealed=false; leave one out"
        )
        self.require(not self.audit or self.backend not in rules, "audit", rules.get(self.backend, ""))
        self._check_losses()

    def _check_losses(self) -> None:
        goes_on = self.on_loss == OnLoss.go_on
        fits = 1 <= self.min_machines <= self.num_machines
        self.require(fits, "min_machines", f"must be from 1 to cluster.num_machines={self.num_machines}")
        rule = "adds up the bytes of all ranks, and cluster.on_loss=go_on may lose one"
        self.require(not (goes_on and self.audit), "audit", rule)
        rule = "must be fail with cluster.backend=nccl: a group that NCCL has lost a member of does not end; use gloo"
        self.require(not (goes_on and self.backend == Backend.nccl), "on_loss", rule)
        rule = "takes cluster.backend=loopback, where no machine is lost by itself, and cluster.on_loss=go_on"
        self.require(not self.script or (goes_on and self.backend == Backend.loopback), "script", rule)
        self.at_least(1, "deadline")
        self.positive("deadline")
        rule = "takes cluster.on_loss=go_on: with fail, and with methods that need it, a round waits for all machines"
        self.require(self.deadline is None or goes_on, "deadline", rule)
