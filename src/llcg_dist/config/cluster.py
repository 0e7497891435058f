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
    """Number of checkpoints kept per rank; during the run also those that not all ranks have completed."""
    dir: str | None = None
    """Folder of the checkpoints; default <run_dir>/checkpoints. May be on each host's local disk."""
    mirror: str | None = None
    """A second folder, used by this run only and on another disk: ranks keep a copy there of what a resume needs."""

    def check(self) -> None:
        super().check()
        self.at_least(0, "every")
        self.at_least(1, "keep")


@dataclass
class ClusterConfig(Section):
    section: ClassVar[str] = "cluster"

    num_machines: int = 4
    """P, the number of parts and of machines."""
    backend: Backend = Backend.auto
    """auto, gloo, nccl, or loopback (all machines in one process, for tests and sweeps; the same bits)."""
    device: Device = Device.auto
    """auto, cpu or cuda; the ranks of a host are assigned to its GPUs in turn."""
    interface: str | None = None
    """Network interface of the ranks; default: lo on one host, otherwise the one that leads to the job's head."""
    start: StartMethod = StartMethod.auto
    """How `llcg train` starts ranks: fork (from one process that has imported everything), spawn (each rank imports
    everything), or auto (fork unless the ranks may use a GPU)."""
    threads: int = 1
    """CPU threads of each rank; 0 divides the host's cores among its ranks (the bits depend on the number)."""
    server_threads: int | str = AUTO
    """CPU threads of an evaluation at the server, or auto: the cores that the machines on its host leave free, at least
    `threads`; in a job of one process, or with model=own, `threads`. Built-in models give the same bits either way."""
    timeout: float = 120.0
    """Seconds without any sign of life before a rank counts as lost (see on_loss); a round may take longer."""
    stall_timeout: float | None = 1800.0
    """Seconds that a rank may be alive without progress (a step, a chunk of an evaluation, a block of a file) before
    it counts as lost (see on_loss); waiting for another rank does not count. null: no limit."""
    join_timeout: float = 600.0
    """Seconds to wait for all ranks to join and to be ready."""
    max_restarts: int = 0
    """How often a failed job is restarted; it resumes from the last checkpoint that all ranks have."""
    on_loss: OnLoss = OnLoss.fail
    """If a machine dies, is disconnected or stalls: fail (the job ends), or go_on (the others continue, and it takes
    its part again when it returns; llcg help faults)."""
    stand_in: bool = True
    """With on_loss=go_on: whether the server takes the local steps of parts without a machine, on the full graph."""
    deadline: float | None = None
    """With on_loss=go_on: a round ends without machines that take longer than this multiple of the median machine's
    time in earlier rounds; default: wait for all machines."""
    late: LatePolicy = LatePolicy.damp
    """With a deadline, what happens to a late update: drop (it is ignored), or damp (it is averaged in the round after
    it arrives, with 1/(1+age) of its weight, age in rounds)."""
    min_machines: int = 1
    """With on_loss=go_on: the job fails if fewer machines than this are left."""
    max_returns: int = 8
    """With on_loss=go_on: how often each machine is restarted after it died."""
    script: str | None = None
    """With cluster.backend=loopback: metrics.jsonl of a run; the same parts are lost in the same rounds."""
    sealed: bool = True
    """Whether messages are encrypted and authenticated, and values of the job's store authenticated, with the job's key
    (llcg help security)."""
    key_file: str | None = None
    """File with the job's key, from `llcg key FILE`, the same on every host; default: on one host a new key."""
    audit: bool = False
    """Compare the counted bytes with the kernel's for the job's sockets; a difference that TCP and Gloo do not explain
    fails the job."""
    link_mbit: float | None = None
    """Mbit/s of each rank's link, for computing cluster_seconds; default: sending takes no time."""

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
