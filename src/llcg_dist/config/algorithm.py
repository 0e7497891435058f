"""Section `algorithm`: the method, the paper's K, rho and S, and what server and machines exchange."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from omegaconf import MISSING

from llcg_dist.config.section import Section

AUTO = "auto"
"""The value of algorithm.S with which the server chooses the number of correction steps every round."""
FILL = "fill"
"""The value of algorithm.S with which the server takes as many correction steps as fit beside the local steps."""
SERVER_WEIGHT = 0.75
"""Default of algorithm.server_weight: of 0.25, 0.5, 0.75 and 0.9 the one that did well on all graphs of
`python -m studies.beside --tune`."""


class Schedule(StrEnum):
    equal_total = "equal_total"
    literal = "literal"


class Correction(StrEnum):
    after = "after"
    beside = "beside"


class BatchNormStats(StrEnum):
    average = "average"
    recalibrate = "recalibrate"
    best = "best"


class Averaging(StrEnum):
    uniform = "uniform"
    train_nodes = "train_nodes"


class ServerOptimizer(StrEnum):
    plain = "plain"
    momentum = "momentum"
    nesterov = "nesterov"
    adam = "adam"


class ExchangeDtype(StrEnum):
    float32 = "float32"
    bfloat16 = "bfloat16"
    int8 = "int8"


class Screen(StrEnum):
    off = "off"
    warn = "warn"
    clip = "clip"
    refuse = "refuse"


class Aggregate(StrEnum):
    mean = "mean"
    median = "median"
    trimmed_mean = "trimmed_mean"
    learned = "learned"


class NoiseSeed(StrEnum):
    job = "job"
    secret = "secret"


@dataclass
class AlgorithmConfig(Section):
    section: ClassVar[str] = "algorithm"

    name: str = MISSING
    K: float = 8.0
    """Local steps per round; with schedule=equal_total, the mean over all rounds."""
    rho: float = 1.0
    """Growth factor of the local steps from round to round; see schedule."""
    S: int | str = 0
    """Correction steps of the server per round: a number, auto (chosen every round), or fill (needs correction=beside:
    as many as fit into the time of the local steps); llcg help methods."""
    S_max: int = 16
    """Largest number of correction steps per round with S=auto and S=fill."""
    correction: Correction = Correction.after
    """When the server takes its S steps: after (from the average, while the machines wait; Algorithm 2), or beside
    (from the model it sent, while the machines train; the result is then combined with the average)."""
    server_weight: float = SERVER_WEIGHT
    """correction=beside: weight of the server's model in the new model; the machines' average has the rest."""
    fill_ratio: float | None = None
    """S=fill: number of server steps that take as long as one local step; default: measured before the first round."""
    schedule: Schedule = Schedule.equal_total
    """equal_total (K*R steps in total, for any rho) or literal (K*rho^r unchanged)."""
    balance_speed: bool = False
    """Whether faster machines take more local steps; the total number of steps stays the same."""
    speeds: list[float] | None = None
    """balance_speed: speed of the machine of every part, in any unit; default: measured before the first round."""
    max_local_steps: int | None = None
    """Upper limit on the local steps of one round."""
    batchnorm_stats: BatchNormStats = BatchNormStats.average
    """BatchNorm statistics of evaluated and saved models: average (of the machines' running statistics), recalibrate
    (computed by the server on the whole graph), or best (whichever has the better validation score)."""
    averaging: Averaging = Averaging.uniform
    """Weights of the models in the average: uniform (1/P each) or train_nodes (by training nodes of the part)."""
    server_optimizer: ServerOptimizer = ServerOptimizer.plain
    """plain (the new model is the average), or the optimiser of a step from the last model towards the average:
    momentum, nesterov or adam."""
    server_step: float | None = None
    """Learning rate of server_optimizer; default 1 (momentum, nesterov) or 0.01 (adam)."""
    server_momentum: float = 0.9
    """Momentum of server_optimizer=momentum and nesterov; first beta of adam."""
    exchange_dtype: ExchangeDtype = ExchangeDtype.float32
    """Data type of models in messages: float32, or bfloat16 or int8 with error feedback (the rounding error is added to
    the next message)."""
    screen: Screen = Screen.warn
    """What the server does with an update that is much longer than those of other machines: off, warn (report and
    record it), clip (shorten it to the limit) or refuse (do not average it)."""
    screen_factor: float = 5.0
    """Limit of screen on the length of an update, as a multiple of the median over the machines of a round."""
    aggregate: Aggregate = Aggregate.mean
    """How the server combines the machines' models: mean, coordinate-wise median or trimmed_mean (robust to a few wrong
    values), or learned (weights per layer, fitted on training nodes)."""
    mix_steps: int = 8
    """aggregate=learned: steps per round that fit the weights, each on a mini-batch of the server."""
    mix_lr: float = 0.1
    """aggregate=learned: learning rate for the logits of the weights."""
    trim: float = 0.25
    """aggregate=trimmed_mean: share of the machines whose values are discarded at each end."""
    clip: float | None = None
    """Maximum L2 norm of a machine's update (learned parameters); the machine shortens longer updates itself."""
    noise: float = 0.0
    """Standard deviation of the Gaussian noise that a machine adds to its update, as a multiple of algorithm.clip."""
    noise_seed: NoiseSeed = NoiseSeed.job
    """Source of the noise: job (from `seed`: reproducible, but anyone who knows the seed can remove it), or secret
    (from random bytes that every machine draws and keeps beside its checkpoints)."""
    delta: float = 1e-5
    """With noise: the delta for which the run's epsilon is reported."""
    feature_cache: int = 0
    """ggs, full_sync: bytes of remote features that a machine may cache, the most requested first; 0 caches none."""
    storage_overhead: float = 0.1
    """subgraph_approx: number of remote nodes stored with a part, as a share of the part's own nodes."""
    target: str | None = None
    """own: dotted path of a subclass of llcg_dist.Algorithm."""
    options: dict[str, Any] = field(default_factory=dict)
    """own: keyword arguments of its constructor, for example algorithm.options.mu=0.1."""

    @property
    def label(self) -> str:
        """What the method is called in records and reports."""
        return method_label(self.name, self.target)

    @property
    def corrects(self) -> bool:
        """Whether the server may take correction steps."""
        return self.S != 0

    @property
    def draws_at_server(self) -> bool:
        """Whether the server may draw mini-batches: for correction steps, or for the weights of the average."""
        return self.corrects or self.aggregate == Aggregate.learned

    @property
    def fixed_correction_steps(self) -> int:
        """S where it is a number; 0 where it follows from what is measured."""
        return self.S if isinstance(self.S, int) else 0

    def check(self) -> None:
        super().check()
        self._check_correction()
        self._check_updates()
        self.require(0 < self.K < float("inf"), "K", "must be a positive number of local steps")
        rule = "must be at least 1 with schedule=equal_total (every round takes a step)"
        self.require(self.K >= 1 or self.schedule != Schedule.equal_total, "K", rule)
        self.positive("rho", "server_step")
        self.at_least(1, "S_max", "max_local_steps")
        self.at_least(0, "feature_cache")
        self.fractions_below_1("server_momentum")
        rule = "has no effect with server_optimizer=plain, which takes the average as it is"
        stepless = self.server_step is None or self.server_optimizer != ServerOptimizer.plain
        self.require(stepless, "server_step", rule)
        rule = "has no effect unless algorithm.balance_speed=true"
        self.require(self.balance_speed or self.speeds is None, "speeds", rule)
        positive = all(0 < speed < float("inf") for speed in self.speeds or [])
        self.require(positive, "speeds", "must be positive numbers, one for every part")
        rule = "must be a positive share of a part's nodes, such as 0.1"
        self.require(0 < self.storage_overhead < float("inf"), "storage_overhead", rule)

    def _check_correction(self) -> None:
        """The rules of how many steps the server takes, and when."""
        number = isinstance(self.S, int) and not isinstance(self.S, bool) and self.S >= 0
        self.require(number or self.S in (AUTO, FILL), "S", "must be a whole number, not negative, auto or fill")
        beside = self.correction == Correction.beside
        rule = "needs algorithm.correction=beside: the steps shall fit beside the local steps"
        self.require(beside or self.S != FILL, "S", rule)
        self.require(0 < self.server_weight < 1, "server_weight", "must lie between 0 and 1, and be neither")
        rule = "has no effect with correction=after, which goes on from the average"
        self.require(beside or self.server_weight == SERVER_WEIGHT, "server_weight", rule)
        self.positive("fill_ratio")
        rule = "has no effect unless algorithm.S=fill"
        self.require(self.S == FILL or self.fill_ratio is None, "fill_ratio", rule)

    def _check_updates(self) -> None:
        """The rules of how updates are judged, aggregated and protected."""
        self.require(1 < self.screen_factor < float("inf"), "screen_factor", "must be a number above 1")
        self.require(0 < self.trim < 0.5, "trim", "must lie between 0 and 0.5, and be neither")
        self.positive("clip", "mix_lr")
        self.at_least(1, "mix_steps")
        self.require(0 <= self.noise < float("inf"), "noise", "must be a number, not negative")
        rule = "needs algorithm.clip, which it is a multiple of"
        self.require(not self.noise or self.clip is not None, "noise", rule)
        self.require(0 < self.delta < 1, "delta", "must lie between 0 and 1, and be neither")
        rule = f"must be uniform with aggregate={self.aggregate}, which gives every machine one voice"
        takes_weights = self.aggregate in (Aggregate.mean, Aggregate.learned)
        self.require(takes_weights or self.averaging == Averaging.uniform, "averaging", rule)


def method_label(name: str, target: str | None) -> str:
    """The method's name; of a method of one's own, that of its class."""
    return target.rpartition(".")[2] if target else name
