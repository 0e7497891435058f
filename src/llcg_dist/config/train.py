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
    """gamma, the learning rate of the server's correction."""
    local_batch_size: int = 64
    """Training nodes of a machine's mini-batch."""
    server_batch_size: int = 256
    """Training nodes of a mini-batch of the server's correction."""
    optimizer: str = "adam"
    """adam, sgd, or the dotted path of a class such as torch.optim.AdamW, at the machines and at the server."""
    optimizer_options: dict[str, Any] = field(default_factory=dict)
    """Its keyword arguments besides the learning rate and weight_decay: train.optimizer_options.momentum=0.9."""
    optimizer_state: OptimizerState = OptimizerState.keep
    """keep the optimiser's state across rounds, or reset it at the start of each."""
    weight_decay: float = 0.0
    """The optimiser's weight decay, at the machines and at the server."""
    precision: Precision = Precision.float32
    """Of the dense products of a step, at machines and server: float32, or bfloat16 with sums in float32, faster where
    the CPU has avx512_bf16 or amx_bf16 (llcg doctor); weights, optimiser and BatchNorm's statistics stay float32."""
    local_loss: LocalLoss = LocalLoss.plain
    """plain, or calibrated: a machine adds log(local / global share of a class) to its logits, in its loss alone."""
    lr_schedule: LrSchedule = LrSchedule.constant
    """Of both learning rates: constant, cosine (falls towards 0), warmup (rises, then constant), warmup_cosine, or
    cosine_end (constant, and falls at the end alone)."""
    lr_warmup: float = 0.1
    """The share of the run over which warmup and warmup_cosine rise."""
    lr_end: float = 0.25
    """The share of the run over which cosine_end falls."""
    lr_unit: LrUnit = LrUnit.rounds
    """What the schedule counts: rounds, or the machines' local steps (steps)."""

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
    """Neighbours a machine samples per node and layer: one number, or one per layer as [10,5]; -1 takes all of them, a
    number between 0 and 1 that share of them."""
    method: SamplingMethod = SamplingMethod.neighbor
    """How a machine samples them: neighbor (each node for itself) or labor (nodes of a layer agree; fewer rows)."""
    prefetch: Switch = Switch.auto
    """Draw a machine's next mini-batch in a second thread: on, off, or auto (where the host has more cores than ranks);
    the same bits either way."""
    features_on: FeaturesOn = FeaturesOn.auto
    """Where a rank on a GPU keeps the features: device, host (the rows of each batch are uploaded), or auto (on the
    device where they take at most half of its free memory); the same bits either way."""
    server_fanout: Fanouts = -1
    """Neighbours in the server's correction, written like fanout."""
    server_minibatch: ServerMinibatch = ServerMinibatch.uniform
    """Nodes of the correction: uniform over all training nodes, or cut_edges (training nodes at an end of one)."""

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
    model whenever the process that evaluates is free: no round waits, and the clock decides which rounds are scored."""
    process: Switch = Switch.auto
    """Evaluate in a process of its own beside the rounds: on, off, or auto (where the server's host has two cores or
    more); the same scores either way. A job of one process (loopback, single) has none."""
    chunk: int = 65_536
    """Nodes that evaluation computes at a time (fewer where they have more than 8 neighbours on average)."""
    scratch: str | None = None
    """Folder for the hidden states of a graph whose states exceed memory; by default they stay in memory."""
    states: Precision = Precision.float32
    """Of the hidden states and dense products of an evaluation: float32, or bfloat16 in half the memory."""
    sample: float = 1.0
    """The share of the training, validation and test nodes that a round is scored on, drawn once by the seed; below 1
    scores are estimates, with their standard errors beside them (val_score_error, test_score_error)."""
    ema: float = 0.0
    """What an exponential average of the rounds' models keeps of itself every round, such as 0.8. With it that average
    is what is scored and saved (best.pt, model.pt), while training goes on from the models as they are; 0: none."""
    both_statistics: bool = False
    """Also score with the other kind of BatchNorm statistics than algorithm.batchnorm_stats, in columns of its own."""

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
    """End the run after so many evaluations in a row without a better validation score; 0 or null turns this off."""
    min_delta: float = 0.0
    """How much better than the best so far a score must be to count."""

    def check(self) -> None:
        super().check()
        self.at_least(0, "patience", "min_delta")


@dataclass
class DiagnosticsConfig(Section):
    section: ClassVar[str] = "diagnostics"

    every: int = 0
    """Measure the quantities of the paper's theorems every N rounds (llcg help diagnostics); 0 turns this off."""
    repeats: int = 4
    """How often the training nodes are cut into mini-batches to estimate the noise of sampling."""
    chunk: int = 1024
    """Training nodes whose gradient is computed at a time, with all their neighbours."""
    hessian_steps: int = 10
    """Steps of the power iteration that estimates the smoothness L."""

    def check(self) -> None:
        super().check()
        self.at_least(0, "every")
        self.at_least(2, "repeats")
        self.at_least(1, "chunk", "hessian_steps")


def _is_fanout(value: Any) -> bool:
    count = isinstance(value, int) and not isinstance(value, bool) and (value == -1 or value >= 1)
    return count or (isinstance(value, float) and 0 < value < 1)
