"""The typed settings behind `conf/`: unknown keys and wrong types fail when composed.

The text under each field is what `llcg train --help` prints. `conf/` holds the presets, one file per choice of a group.
"""

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from llcg_dist.config.datasets import DatasetConfig

AUTO = "auto"
"""The value of algorithm.S with which the server chooses the number of correction steps every round."""
BEST = "best"
"""The value of algorithm.batchnorm_stats that keeps, of average and recalibrate, the better on validation."""


@dataclass
class PartitionConfig:
    method: str = "metis"
    """metis (few cut edges) or random."""
    seed: int = 0
    """Seed of the partitioner; apart from `seed`, so that seeds sweep over the same parts."""
    root: str = "partitions"
    """Folder that holds the partition stores."""


@dataclass
class ModelConfig:
    name: str = "sage"
    arch: str | None = None
    """Layer by layer: G (GCN), S (SAGE), L (linear), B (BatchNorm), e.g. SBSBS. Default: from name, layers, norm."""
    hidden: int = 64
    layers: int = 2
    dropout: float = 0.5
    norm: str = "batch"
    """batch (BatchNorm between layers; appnp: of the features, as the paper has it) or none."""
    input_norm: bool = False
    """BatchNorm of the features before the first layer, without affine weights: a leading B."""
    gcn_norm: str = "symmetric"
    """Normalisation of G: symmetric (D^-1/2 A D^-1/2) or row (D^-1 A), self-loops included."""
    heads: int = 1
    """Attention heads of gat; they share `hidden`."""
    teleport: float = 0.2
    """beta, the share of its first state that a node of appnp returns to at every propagation."""


@dataclass
class AlgorithmConfig:
    name: str = MISSING
    K: float = 8.0
    """Local steps a round; with schedule=equal_total their mean over the rounds."""
    rho: float = 1.0
    """Growth of the local steps: round r takes K*rho^r."""
    S: Any = 0
    """Correction steps of the server a round: a number, or auto (chosen every round; docs/algorithms.md)."""
    S_max: int = 16
    """The most correction steps that S=auto takes in a round."""
    schedule: str = "equal_total"
    """equal_total (K*R steps in all, whatever rho) or literal (K*rho^r as it stands)."""
    max_local_steps: int | None = None
    """Upper limit on the local steps of one round."""
    batchnorm_stats: str = "average"
    """average (of the machines' running statistics), recalibrate (one pass over the whole graph at the server), or best
    (of these two the one with the better validation score)."""
    averaging: str = "uniform"
    """uniform (1/P each) or train_nodes (weighted by the parts' training nodes)."""
    server_optimizer: str = "plain"
    """What the server makes of the average: plain (the average itself), or a step from the last model along the way to
    it: momentum, nesterov or adam."""
    server_step: float | None = None
    """Length of that step; default 1 (momentum, nesterov) or 0.01 (adam)."""
    server_momentum: float = 0.9
    """What momentum and nesterov keep of their last step; adam's first beta."""
    exchange_dtype: str = "float32"
    """How models cross between server and machines: float32 (as they are), or rounded to bfloat16 or int8, where what
    one message leaves out goes with the next."""
    feature_cache: int = 0
    """ggs, full_sync: bytes of remote features that a machine may keep, the most requested first; 0 keeps none."""
    storage_overhead: float = 0.1
    """subgraph_approx: remote nodes stored with a part, as a share of its own."""


@dataclass
class TrainConfig:
    local_lr: float = 1e-2
    """eta, the machines' learning rate."""
    server_lr: float = 1e-2
    """gamma, the learning rate of the server's correction."""
    local_batch_size: int = 64
    server_batch_size: int = 256
    optimizer: str = "adam"
    """adam or sgd, at the machines and at the server."""
    optimizer_state: str = "keep"
    """keep the optimiser's state across rounds, or reset it at the start of each."""
    weight_decay: float = 0.0
    local_loss: str = "plain"
    """plain, or calibrated: a machine adds log(local / global share of a class) to its logits, in its loss alone."""
    lr_schedule: str = "constant"
    """Of both learning rates: constant, cosine (falls towards 0), warmup (rises, then constant) or warmup_cosine."""
    lr_warmup: float = 0.1
    """The share of the run over which warmup and warmup_cosine rise."""
    lr_unit: str = "rounds"
    """What the schedule counts: rounds, or the machines' local steps (steps)."""


@dataclass
class SamplingConfig:
    fanout: Any = 10
    """Neighbours a machine samples per node and layer: one number, or one per layer as [10,5]; -1 takes all of them, a
    number between 0 and 1 that share of them."""
    method: str = "neighbor"
    """How a machine samples them: neighbor (each node for itself) or labor (nodes of a layer agree; fewer rows)."""
    server_fanout: Any = -1
    """Neighbours in the server's correction, written like fanout."""
    server_minibatch: str = "uniform"
    """Nodes of the correction: uniform over all training nodes, or cut_edges (training nodes at an end of one)."""


@dataclass
class EvaluateConfig:
    every: int = 1
    """Score the model on the whole graph every N rounds and at the end; 0 turns evaluation off."""
    chunk: int = 65_536
    """Nodes that evaluation computes at a time (fewer where they have more than 8 neighbours on average)."""
    scratch: str | None = None
    """Folder for the hidden states of a graph whose states exceed memory; by default they stay in memory."""
    both_statistics: bool = False
    """Also score with the other kind of BatchNorm statistics than algorithm.batchnorm_stats, in columns of its own."""


@dataclass
class DiagnosticsConfig:
    every: int = 0
    """Measure the quantities of the paper's theorems every N rounds (docs/diagnostics.md); 0 turns this off."""
    repeats: int = 4
    """How often the training nodes are cut into mini-batches to estimate the noise of sampling."""
    chunk: int = 1024
    """Training nodes whose gradient is computed at a time, with all their neighbours."""
    hessian_steps: int = 10
    """Steps of the power iteration that estimates the smoothness L."""


@dataclass
class CheckpointConfig:
    every: int = 1
    """Save every N rounds and at the end; 0 turns checkpoints off."""
    keep: int = 2
    """How many whole checkpoints stay on the disk."""
    dir: str | None = None
    """Folder of the checkpoints; default <run_dir>/checkpoints. May be a disk of each host's own."""


@dataclass
class ClusterConfig:
    num_machines: int = 4
    """P, the number of parts and of local machines."""
    backend: str = "auto"
    """auto, gloo, nccl, or loopback (all machines in one process, for tests and sweeps; same bits)."""
    device: str = "auto"
    """auto, cpu or cuda; ranks of a host take its GPUs in turn."""
    interface: str | None = None
    """Network interface of the ranks; default: lo on one host, else the one that leads to the job's head."""
    start: str = "auto"
    """How `llcg train` starts ranks: fork (from one process that has imported everything), spawn (each imports for
    itself), or auto (fork unless the ranks may use a GPU)."""
    threads: int = 1
    """CPU threads of each rank; 0 shares the host's cores among its ranks (the bits depend on the number)."""
    timeout: float = 120.0
    """Seconds a rank may be silent (not: a round may take) before the job fails and names it."""
    join_timeout: float = 600.0
    """Seconds to wait for all ranks to join and to be ready."""
    max_restarts: int = 0
    """How often a failed job is started again; it goes on from its last whole checkpoint."""
    audit: bool = False
    """Compare the ledger with the bytes that the kernel counted on the job's sockets; a difference fails the job."""


@dataclass
class Config:
    dataset: DatasetConfig = field(default_factory=DatasetConfig)
    partition: PartitionConfig = field(default_factory=PartitionConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    algorithm: AlgorithmConfig = field(default_factory=AlgorithmConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    evaluate: EvaluateConfig = field(default_factory=EvaluateConfig)
    diagnostics: DiagnosticsConfig = field(default_factory=DiagnosticsConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    num_rounds: int = 20
    """R, the rounds of communication."""
    seed: int = 0
    """Seed of the model's initial weights, the mini-batches, the sampling and dropout."""
    on_nonfinite: str = "fail"
    """When a machine sends NaN or infinity: fail, or skip (average the others, and give it the good model)."""
    resume: str = "auto"
    """auto (continue an unfinished run in run_dir), must (fail where there is nothing to continue) or never."""
    verify: str = "full"
    """What is checked of a stored graph before it is used: full (sizes and checksums) or sizes."""
    logger: Any = "auto"
    """Curves besides metrics.jsonl: tensorboard, mlflow, wandb, a list, none, or auto (tensorboard where installed)."""
    run_dir: str | None = None
    """Folder of the run's records; default runs/<date>_<time>_<dataset>_<algorithm>."""
