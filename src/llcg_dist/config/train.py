"""Sections of what a step is and how the model is measured: train, sampling, evaluate, early_stop, diagnostics."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from llcg_dist.config.section import Section

Fanout = int | float
"""Neighbours to sample per node: a number, -1 for all of them, or a share between 0 and 1."""
if TYPE_CHECKING:
    Fanouts = Fanout | list[Fanout]
else:
    Fanouts = Any  # OmegaConf knows no union with a list: SamplingConfig.check does what it would do


OPTIMIZERS = {"adam": "torch.optim.Adam", "sgd": "torch.optim.SGD"}
"""Short names of optimisers."""
WHEN_FREE = "auto"
"""The value of evaluate.every with which a model is scored whenever nothing else is."""


class OptimizerState(StrEnum):
    keep = "keep"
    reset = "reset"


class Precision(StrEnum):
    float32 = "float32"
    bfloat16 = "bfloat16"


class LocalLoss(StrEnum):
    plain = "plain"
    calibrated = "calibrated"


class LrSchedule(StrEnum):
    constant = "constant"
    cosine = "cosine"
    warmup = "warmup"
    warmup_cosine = "warmup_cosine"
    cosine_end = "cosine_end"


class LrUnit(StrEnum):
    rounds = "rounds"
    steps = "steps"


class SamplingMethod(StrEnum):
    neighbor = "neighbor"
    labor = "labor"


class FeaturesOn(StrEnum):
    auto = "auto"
    device = "device"
    host = "host"


class Switch(StrEnum):
    auto = "auto"
    on = "on"
    off = "off"


class ServerMinibatch(StrEnum):
    uniform = "uniform"
    cut_edges = "cut_edges"


@dataclass
class TrainConfig(Section):
    section: ClassVar[str] = "train"

    local_lr: float = 1e-2
    """eta, the machines' learning rate."""
    server_lr: float = 1e-2
    """gamma, the learning rate of the server's correction steps."""
    local_batch_size: int = 64
    """Number of training nodes in a machine's mini-batch."""
    server_batch_size: int = 256
    """Number of training nodes in a mini-batch of a correction step."""
    optimizer: str = "adam"
    """adam, sgd, or the dotted path of a class such as torch.optim.AdamW; used by machines and server."""
    optimizer_options: dict[str, Any] = field(default_factory=dict)
    """Other keyword arguments of the optimiser, for example train.optimizer_options.momentum=0.9."""
    optimizer_state: OptimizerState = OptimizerState.keep
    """keep the optimiser's state across rounds, or reset it at the start of every round."""
    weight_decay: float = 0.0
    """Weight decay of the optimiser, at machines and server."""
    precision: Precision = Precision.float32
    """Precision of matrix products in training steps: float32, or bfloat16 with float32 accumulation, which is faster
    on CPUs with avx512_bf16 or amx_bf16 (see llcg doctor). Weights, optimiser and BatchNorm statistics stay float32."""
    local_loss: LocalLoss = LocalLoss.plain
    """plain, or calibrated: in its loss, a machine adds log(local / global share) of each class to the logits."""
    lr_schedule: LrSchedule = LrSchedule.constant
    """Schedule of both learning rates: constant, cosine (falls towards 0), warmup (rises, then constant),
    warmup_cosine, or cosine_end (constant, falls only at the end)."""
    lr_warmup: float = 0.1
    """Share of the run in which warmup and warmup_cosine rise."""
    lr_end: float = 0.25
    """Share of the run in which cosine_end falls."""
    lr_unit: LrUnit = LrUnit.rounds
    """Unit of the schedule: rounds, or steps (local steps of the machines)."""

    def check(self) -> None:
        super().check()
        self.positive("local_lr", "server_lr")
        self.at_least(1, "local_batch_size", "server_batch_size")
        self.at_least(0, "weight_decay")
        self.at_most(1e9, "weight_decay")
        rule = f"must be one of {', '.join(OPTIMIZERS)}, or a dotted path such as torch.optim.AdamW"
        self.require(self.optimizer in OPTIMIZERS or "." in self.optimizer, "optimizer", rule)
        self.fractions_below_1("lr_warmup")
        self.require(0 < self.lr_end <= 1, "lr_end", "must be above 0 and at most 1")


@dataclass
class SamplingConfig(Section):
    section: ClassVar[str] = "sampling"

    fanout: Fanouts = 10
    """Neighbours that a machine samples per node and layer: one number, or one per layer such as [5,10], in the order
    of the model's layers (DGL's order; PyG's starts at the batch); -1 means all, a number between 0 and 1 that share of
    them."""
    method: SamplingMethod = SamplingMethod.neighbor
    """Sampling method of the machines: neighbor (independent for each node) or labor (nodes of a layer share
    neighbours, so fewer feature rows are read)."""
    prefetch: Switch = Switch.auto
    """Sample a machine's next mini-batch in a second thread: on, off, or auto (if the ranks'
    threads leave cores free); the same bits either way."""
    features_on: FeaturesOn = FeaturesOn.auto
    """Where a rank on a GPU keeps the features: device, host (the rows of each batch are uploaded), or auto (on the
    device if they take at most half of its free memory); the same bits either way."""
    server_fanout: Fanouts = -1
    """Neighbours sampled in the server's correction steps, in the format of fanout."""
    server_minibatch: ServerMinibatch = ServerMinibatch.uniform
    """Training nodes of correction steps: uniform (any training node), or cut_edges (only ends of cut edges)."""

    def check(self) -> None:
        super().check()
        rule = "must be -1, a positive whole number or a share between 0 and 1, or a list of them"
        for name in ("fanout", "server_fanout"):
            given = getattr(self, name)
            values = given if isinstance(given, list) and given else [given]
            self.require(all(map(_is_fanout, values)), name, rule)


@dataclass
class EvaluateConfig(Section):
    section: ClassVar[str] = "evaluate"

    every: int | str = 1
    """Score the model on the whole graph every N rounds and at the end; 0 turns evaluation off. auto scores the newest
    model whenever the evaluator is free: no round waits, but the clock decides which rounds are scored."""
    process: Switch = Switch.auto
    """Evaluate in a separate process while rounds continue: on, off, or auto (if the server's host has at least two
    cores and cluster.threads=1); the same scores either way. Jobs of one process (loopback, single) have no such
    process."""
    chunk: int = 65_536
    """Number of nodes that evaluation computes at a time (fewer if they have more than 8 neighbours on average)."""
    scratch: str | None = None
    """Folder for hidden states that exceed memory; default: they stay in memory."""
    states: Precision = Precision.float32
    """Precision of hidden states and matrix products in evaluation: float32, or bfloat16 (half the memory)."""
    sample: float = 1.0
    """Share of training, validation and test nodes that are scored, drawn once with the seed; below 1, scores are
    estimates with standard errors (val_score_error, test_score_error)."""
    ema: float = 0.0
    """Decay of an exponential moving average of the rounds' models, such as 0.8. The average is scored and saved
    (best.pt, model.pt); training continues from the current model. 0 turns this off."""
    both_statistics: bool = False
    """Also score with the other kind of BatchNorm statistics (see algorithm.batchnorm_stats), in separate columns."""

    def check(self) -> None:
        super().check()
        number = isinstance(self.every, int) and not isinstance(self.every, bool) and self.every >= 0
        self.require(number or self.every == WHEN_FREE, "every", "must be a whole number, not negative, or auto")
        self.at_least(1, "chunk")
        self.fractions_below_1("ema")
        self.require(0 < self.sample <= 1, "sample", "must be above 0 and at most 1")
        rule = "nothing is scored with evaluate.every=0; leave it off"
        self.require(self.every != 0 or not self.both_statistics, "both_statistics", rule)


@dataclass
class EarlyStopConfig(Section):
    section: ClassVar[str] = "early_stop"

    patience: int | None = None
    """Stop after this many evaluations in a row without a better validation score; 0 or null turns this off."""
    min_delta: float = 0.0
    """Minimum improvement over the best score that counts as better."""

    def check(self) -> None:
        super().check()
        self.at_least(0, "patience", "min_delta")


@dataclass
class DiagnosticsConfig(Section):
    section: ClassVar[str] = "diagnostics"

    every: int = 0
    """Measure the quantities of the paper's theorems every N rounds (llcg help diagnostics); 0 turns this off."""
    repeats: int = 4
    """Number of passes over the training nodes in mini-batches, to estimate the sampling noise."""
    chunk: int = 1024
    """Number of training nodes whose gradient is computed at a time, with all their neighbours."""
    hessian_steps: int = 10
    """Number of power iterations that estimate the smoothness L."""

    def check(self) -> None:
        super().check()
        self.at_least(0, "every")
        self.at_least(2, "repeats")
        self.at_least(1, "chunk", "hessian_steps")


def _is_fanout(value: Any) -> bool:
    count = isinstance(value, int) and not isinstance(value, bool) and (value == -1 or value >= 1)
    return count or (isinstance(value, float) and 0 < value < 1)
