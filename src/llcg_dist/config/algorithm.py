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
    """Local steps a round; with schedule=equal_total their mean over the rounds."""
    rho: float = 1.0
    """Growth of the local steps: round r takes K*rho^r."""
    S: int | str = 0
    """Correction steps of the server a round: a number, auto (chosen every round), or fill (with correction=beside, as
    many as fit beside the local steps); llcg help methods."""
    S_max: int = 16
    """The most correction steps that S=auto and S=fill take in a round."""
    correction: Correction = Correction.after
    """When the server takes its S steps: after (from the machines' average, while they wait; Algorithm 2), or beside
    (from the model that it has sent, while they train; where they lead to then joins the average)."""
    server_weight: float = SERVER_WEIGHT
    """correction=beside: weight of the server's model in the new one; the machines' average has the rest."""
    fill_ratio: float | None = None
    """S=fill: steps of the server that take as long as one local step; default: measured before the first round."""
    schedule: Schedule = Schedule.equal_total
    """equal_total (K*R steps in all, whatever rho) or literal (K*rho^r as it stands)."""
    balance_speed: bool = False
    """Whether machines take local steps in proportion to their speed, as many in all as they would without."""
    speeds: list[float] | None = None
    """balance_speed: the speed of every part's machine, in any unit; default: measured before the first round."""
    max_local_steps: int | None = None
    """Upper limit on the local steps of one round."""
    batchnorm_stats: BatchNormStats = BatchNormStats.average
    """average (of the machines' running statistics), recalibrate (one pass over the whole graph at the server), or best
    (of these two the one with the better validation score)."""
    averaging: Averaging = Averaging.uniform
    """uniform (1/P each) or train_nodes (weighted by the parts' training nodes)."""
    server_optimizer: ServerOptimizer = ServerOptimizer.plain
    """What the server makes of the average: plain (the average itself), or a step from the last model along the way to
    it: momentum, nesterov or adam."""
    server_step: float | None = None
    """Length of that step; default 1 (momentum, nesterov) or 0.01 (adam)."""
    server_momentum: float = 0.9
    """What momentum and nesterov keep of their last step; adam's first beta."""
    exchange_dtype: ExchangeDtype = ExchangeDtype.float32
    """How models cross between server and machines: float32 (as they are), or rounded to bfloat16 or int8, where what
    one message leaves out goes with the next."""
    screen: Screen = Screen.warn
    """What the server does about an update much longer than the other machines': off, warn (say and record it), clip
    (shorten it to the longest that is allowed) or refuse (leave it out of the average)."""
    screen_factor: float = 5.0
    """Longest update that is allowed, as a multiple of the median over the machines of a round."""
    aggregate: Aggregate = Aggregate.mean
    """What the server makes of the machines' models: mean, coordinate by coordinate their median or trimmed_mean, which
    a few false values cannot move far, or learned (a mean with weights by layer that it fits on training nodes)."""
    mix_steps: int = 8
    """aggregate=learned: steps a round, each on a mini-batch of the server's, that fit the weights."""
    mix_lr: float = 0.1
    """aggregate=learned: their learning rate, of the logits of the weights."""
    trim: float = 0.25
    """aggregate=trimmed_mean: share of the machines whose values are left out at either end."""
    clip: float | None = None
    """Longest update (L2 norm, of learned parameters) that a machine sends; it shortens a longer one itself."""
    noise: float = 0.0
    """Standard deviation of the Gaussian noise that a machine adds to its update, as a multiple of algorithm.clip."""
    noise_seed: NoiseSeed = NoiseSeed.job
    """Where the noise comes from: job (from `seed`: runs repeat, but whoever knows the seed can remove it), or secret
    (from random bytes that every machine draws and keeps beside its checkpoints)."""
    delta: float = 1e-5
    """With noise: the delta for which the run's epsilon is told."""
    feature_cache: int = 0
    """ggs, full_sync: bytes of remote features that a machine may keep, the most requested first; 0 keeps none."""
    storage_overhead: float = 0.1
    """subgraph_approx: remote nodes stored with a part, as a share of its own."""
    target: str | None = None
    """own: dotted path of a subclass of llcg_dist.Algorithm."""
    options: dict[str, Any] = field(default_factory=dict)
    """own: keyword arguments of its constructor, after the settings: algorithm.options.mu=0.1."""

    @property
    def label(self) -> str:
        """What the method is called in records and reports."""
        return method_label(self.name, self.target)

    @property
    def corrects(self) -> bool:
        """Whether the server may take correction steps."""
        return self.S != 0

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
