"""What a method may change about a round, and what it answers about itself."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor

from llcg_dist.algorithms.membership_rules import check_membership, check_speeds
from llcg_dist.algorithms.traffic import MessageBytes, RoundTraffic
from llcg_dist.algorithms.update_rules import check_updates
from llcg_dist.comm.channel import ServerChannel
from llcg_dist.comm.ledger import Kind
from llcg_dist.comm.messages import MESSAGES, Message, Train, TrainStats
from llcg_dist.config.algorithm import FILL, Aggregate, Correction, ExchangeDtype, ServerOptimizer
from llcg_dist.config.rules import require
from llcg_dist.config.schema import Config
from llcg_dist.config.train import OptimizerState
from llcg_dist.data.derived import DataAccess
from llcg_dist.models.registry import structure
from llcg_dist.models.rules import check_model
from llcg_dist.training.average import weighted_average
from llcg_dist.training.correction import Corrector
from llcg_dist.training.learning_rate import LearningRates
from llcg_dist.training.mixing import LayerMixer
from llcg_dist.training.optimizer import optimizer_class, state_tensors
from llcg_dist.training.outer_optimizer import outer_optimizer
from llcg_dist.training.robust import robust_aggregate
from llcg_dist.training.running_average import RunningAverage
from llcg_dist.training.schedule import local_steps
from llcg_dist.training.screening import Models, Screener
from llcg_dist.training.trainer import Trainer


class ServerTools(Protocol):
    """The server, as a method sees it."""

    channel: ServerChannel
    corrector: Corrector
    screener: Screener

    @property
    def durable_round(self) -> int:
        """The newest round that every rank has a checkpoint of."""


class MachineTools(Protocol):
    """A machine, as a method sees it."""

    trainer: Trainer

    def local_steps(self, round_: int) -> int: ...

    def stats(self, round_: int) -> TrainStats:
        """How the round went; taken once, at its end."""


Handlers = Mapping[type[Message], Callable[[Message], Message]]


class Algorithm:
    """Parallel SGD with periodic averaging (PSGD-PA): local steps on every part, then the average of the models.
    Subclasses override what differs. In a run, the server has one object of the class and every machine has another."""

    messages: tuple[type[Message], ...] = MESSAGES
    """Message classes that may be sent; any other is an error."""

    allowed_messages: frozenset[Kind] = frozenset({Kind.PARAMETERS})
    """Kinds of content that may be sent besides control data; any other is an error."""

    trains_on_parts = True
    """Whether every part has a process (False: only rank 0 trains)."""

    takes_correction_steps = False
    """Whether the server takes algorithm.S correction steps."""

    corrects_beside = False
    """Whether the server can take them while the machines train (algorithm.correction=beside)."""

    averages_models = True
    """Whether the machines' models are averaged; algorithm.server_optimizer needs this."""

    data_access: DataAccess = DataAccess.PART
    """The data that a machine samples from."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.outer = outer_optimizer(config.algorithm)
        self.running_average = RunningAverage(config.evaluate.ema)
        self.mixer: LayerMixer | None = None
        """Fits the weights of aggregate=learned; only at the server, which has the full graph."""

    @property
    def num_machines(self) -> int:
        return self.config.cluster.num_machines

    def local_steps(self, planned_rounds: int | None = None) -> list[int]:
        """Local steps of each machine in rounds 1..R; an extended run keeps the growth of the rounds first planned."""
        rounds = self.config.num_rounds
        return local_steps(self.config.algorithm, planned_rounds or rounds, rounds)

    @property
    def local_batch_size(self) -> int:
        return self.config.train.local_batch_size

    def server_learning_rate(self, rates: LearningRates) -> tuple[float, Callable[[int, int], float]]:
        """The learning rate of the server's steps, and a function (round, step) that returns its factor."""
        return self.config.train.server_lr, rates.server

    def send_model(self, theta: Tensor, round_: int, server: ServerTools) -> None:
        """Line 3 of Algorithm 2: sends the model to the machines, which then start their local steps."""
        server.channel.send(Train(round_, theta, server.durable_round))

    def correct_beside(self, theta: Tensor, round_: int, corrector: Corrector) -> None:
        """With algorithm.correction=beside: takes the server's steps from the model `theta` that it just sent, while
        the machines train; `correct` then combines the result with the average."""

    def local_phase(self, theta: Tensor, round_: int, server: ServerTools) -> tuple[Tensor, list[Message]]:
        """Lines 4-10: waits until all machines have taken their steps. Returns the model that they started from, and
        their replies, each with a machine's model as content."""
        return theta, server.channel.replies()

    def local_gradient(self, gradient: Tensor, theta: Tensor, start: Tensor) -> Tensor:
        """Line 7: returns the gradient for a machine's next step. All arguments are flat vectors of the learned
        parameters on the machine's device: the mini-batch gradient at `theta`, the current model `theta`, and the model
        `start` that the machine received this round."""
        return gradient

    def after_local_steps(self, theta: Tensor, start: Tensor) -> None:
        """After line 9: called at a machine after the last step of a round, which led from `start` to `theta`, flat
        vectors of the learned parameters. Not called if `theta` is not finite."""

    @property
    def machines_train_alone(self) -> bool:
        """Whether machines take their local steps without hearing of each other."""
        return self.trains_on_parts and self.data_access is not DataAccess.FULL_TOPOLOGY

    def overrides(self, hook: str) -> bool:
        """Whether the method has a hook of its own, such as `local_gradient`."""
        return getattr(type(self), hook) is not getattr(Algorithm, hook)

    @property
    def judges_updates(self) -> bool:
        """Whether there are updates of several machines, which screening can compare."""
        return self.averages_models and self.trains_on_parts

    def aggregate(self, theta: Tensor, models: Models) -> Tensor:
        """Line 11: returns one model from the machines' models, as a new vector; `theta` is the model they started
        from."""
        if self.config.algorithm.aggregate == Aggregate.mean:
            average = weighted_average(models.vectors, models.weights)
        elif self.config.algorithm.aggregate == Aggregate.learned:
            assert self.mixer is not None
            average = self.mixer.mix(models)
        else:
            average = robust_aggregate(self.config.algorithm, models.vectors, self.num_machines)
        return self.outer.step(theta, average, models.statistics)

    def correct(self, theta: Tensor, models: Models, corrector: Corrector) -> Tensor:
        """Lines 12-17: returns the model after the server's steps from the average `theta`; with correction=beside, the
        average combined with the result of the steps taken meanwhile."""
        return theta

    @property
    def goes_on_without(self) -> bool:
        """Whether a round can end without one of the machines: they are independent and answer once per round."""
        return self.machines_train_alone and not self.overrides("local_phase")

    def check(self) -> None:
        """Raises UserError for settings that do not work with the model or the method."""
        check_model(self.config)
        optimizer_class(self.config.train)
        config, settings, name = self.config, self.config.algorithm, self.config.algorithm.name
        no_correction = f"must be 0: {name} has no correction; use algorithm=llcg"
        require(self.takes_correction_steps or settings.S == 0, config, "algorithm.S", no_correction)
        rule = f"must be after: {name} takes no correction steps beside machines"
        require(self.corrects_beside or settings.correction == Correction.after, config, "algorithm.correction", rule)
        rule = f"must be given with S=fill: a machine of {name} cannot take a trial step alone"
        measurable = settings.S != FILL or self.data_access is not DataAccess.FULL_TOPOLOGY
        require(measurable or settings.fill_ratio is not None, config, "algorithm.fill_ratio", rule)
        rule = f"must be plain: {name} averages no models"
        require(
            self.averages_models or settings.server_optimizer == ServerOptimizer.plain,
            config,
            "algorithm.server_optimizer",
            rule,
        )
        check_updates(self)
        if not self.trains_on_parts:
            rule = f"must be float32: nothing crosses with algorithm={name}"
            require(settings.exchange_dtype == ExchangeDtype.float32, config, "algorithm.exchange_dtype", rule)
            rule = f"nothing crosses with algorithm={name}, rank 0 is alone; leave it off"
            require(not config.cluster.audit, config, "cluster.audit", rule)
        check_membership(self)
        check_speeds(self)
        rule = f"must be 0 with algorithm={name}: what is measured is what machines lose that train on parts alone"
        require(self.machines_train_alone or config.diagnostics.every == 0, config, "diagnostics.every", rule)
        if structure(config.model).has_batchnorm and self.num_machines:
            rule = "must be at least 2: BatchNorm cannot normalise a batch of one row; or use model.norm=none"
            require(self.local_batch_size >= 2, config, "train.local_batch_size", rule)

    def traffic(self, sizes: MessageBytes) -> RoundTraffic:
        """The bytes of a round, for messages of these sizes."""
        models = float(self.num_machines * sizes.model)
        return RoundTraffic(models, models)

    @property
    def mean_local_steps(self) -> float:
        return sum(self.local_steps()) / self.config.num_rounds

    def handlers(self, machine: MachineTools) -> Handlers:
        """Functions that answer this method's own messages at a machine, by message class."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """The state that this object keeps between rounds, for the checkpoints of its rank: tensors, numbers and text,
        and lists and dicts of them. Server and machines each save their own."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict` returned; not called if a rank starts without a checkpoint."""

    def machine_state(self) -> list[str]:
        """Names of the state that only a machine has, and that is lost with its checkpoints."""
        train, dtype = self.config.train, self.config.algorithm.exchange_dtype
        keeps_moments = train.optimizer_state == OptimizerState.keep and bool(state_tensors(train))
        names = [f"the optimiser's state ({train.optimizer})"] if keeps_moments else []
        names += [f"what rounding to {dtype} kept back"] if dtype != ExchangeDtype.float32 else []
        return names + ([f"the state of {self.config.algorithm.label}"] if self.overrides("state_dict") else [])

    def shared_state(self, server: ServerTools) -> list[Tensor]:
        """Vectors, none longer than the model, that are the same at the server and every machine; the server sends them
        again to a machine that lost its own."""
        return server.channel.shared_state()

    def load_shared_state(self, vectors: Sequence[Tensor], trainer: Trainer) -> None:
        """At a machine: restores the vectors that do not belong to its channel."""
