"""Full synchronisation: mini-batch gradient descent over the full graph, shared among machines step by step."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import Tensor

from llcg_dist.algorithms.base import Handlers, MachineTools, ServerTools
from llcg_dist.algorithms.ggs import Ggs
from llcg_dist.algorithms.traffic import MessageBytes, RoundTraffic
from llcg_dist.comm.ledger import Kind
from llcg_dist.comm.messages import Gradient, Message
from llcg_dist.config.algorithm import ExchangeDtype
from llcg_dist.config.rules import require
from llcg_dist.config.schema import Config
from llcg_dist.errors import TrainingError
from llcg_dist.models.registry import structure
from llcg_dist.training.average import weighted_average
from llcg_dist.training.learning_rate import LearningRates
from llcg_dist.training.trainer import Trainer


class StartSharing(Message):
    """Begin a round from this model, and send the gradient of its first mini-batch."""

    kind, is_model = Kind.PARAMETERS, True


class GoOnSharing(Message):
    """Begin a round from the model that the last one ended with, and send the gradient of its first mini-batch."""


class ApplyGradient(Message):
    """Take the optimiser's step along this mean of all gradients; send the next gradient, or the statistics."""

    kind = Kind.GRADIENTS


class Statistics(Message):
    """BatchNorm's running statistics at the end of a round, the only floats that differ between machines."""

    kind, ends_round = Kind.PARAMETERS, True


class FullSync(Ggs):
    """GGS whose machines never part: at every step gradients are averaged in part order, and all take the same step.

    The model crosses once, at the start. The server takes the same steps, so that it holds the machines' model; at the
    end of a round they send BatchNorm's statistics.
    """

    messages = (*Ggs.messages, StartSharing, GoOnSharing, ApplyGradient, Statistics)
    allowed_messages = Ggs.allowed_messages | {Kind.GRADIENTS}

    averages_models = False

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._machines_hold_model = False

    def check(self) -> None:
        super().check()
        rule = "must be float32: full_sync sends gradients, and its model once"
        require(
            self.config.algorithm.exchange_dtype == ExchangeDtype.float32, self.config, "algorithm.exchange_dtype", rule
        )

    def traffic(self, sizes: MessageBytes) -> RoundTraffic:
        """The model crosses once, before the first round: it is not in the mean of a round."""
        gradients = 2 * self.num_machines * self.mean_local_steps * sizes.gradients
        statistics = float(self.num_machines * sizes.statistics)
        return replace(super().traffic(sizes), up=statistics, down=0.0, gradients=gradients)

    def server_learning_rate(self, rates: LearningRates) -> tuple[float, Callable[[int, int], float]]:
        return self.config.train.local_lr, rates.machine

    def send_model(self, theta: Tensor, round_: int, server: ServerTools) -> None:
        start, durable_round = None if self._machines_hold_model else theta, server.durable_round
        kind = StartSharing if start is not None else GoOnSharing
        server.channel.send(kind(round_, start, durable_round))
        self._machines_hold_model = True

    def local_phase(self, theta: Tensor, round_: int, server: ServerTools) -> tuple[Tensor, list[Message]]:
        trainer, replies = server.corrector.trainer, server.channel.replies()
        trainer.begin_round(theta, round_)
        while isinstance(replies[0], Gradient):
            vectors = [reply.vector for reply in replies]
            gradients, weights = server.screener.gradients(vectors, trainer.num_learned, round_)
            mean = weighted_average(gradients, weights)
            server.channel.send(ApplyGradient(round_, mean))
            trainer.set_gradient(mean)
            trainer.optimizer_step()
            replies = server.channel.replies()
        shared, statistics = trainer.theta().clone(), trainer.statistics
        for reply, name in zip(replies, server.channel.names, strict=True):
            if reply.vector.numel() != int(statistics.sum()):
                raise TrainingError(f"{name} sent {reply.vector.numel()} running statistics in round {round_}")
        return shared, [_completed(reply, shared, statistics) for reply in replies]

    def handlers(self, machine: MachineTools) -> Handlers:
        steps = _SharedSteps(machine)
        return {StartSharing: steps.begin, GoOnSharing: steps.begin, ApplyGradient: steps.apply}

    def machine_state(self) -> list[str]:
        """Nothing that is learned: the server takes the same steps. Of BatchNorm's statistics it has the average."""
        return ["BatchNorm's running statistics"] if structure(self.config.model).may_have_batchnorm else []

    def shared_state(self, server: ServerTools) -> list[Tensor]:
        return server.corrector.trainer.moments()

    def load_shared_state(self, vectors: Sequence[Tensor], trainer: Trainer) -> None:
        trainer.load_moments(vectors)


class _SharedSteps:
    """A machine's side of a round: its gradients go up, their mean comes down, one step at a time."""

    def __init__(self, machine: MachineTools) -> None:
        self._machine, self._trainer, self._left = machine, machine.trainer, 0

    def begin(self, request: Message) -> Message:
        self._left = self._machine.local_steps(request.round)
        start = request.content
        self._trainer.begin_round(None if start is None else self._trainer.with_saved_statistics(start), request.round)
        return self._gradient(request.round)

    def apply(self, request: Message) -> Message:
        self._trainer.set_gradient(request.vector)
        self._trainer.optimizer_step()
        self._left -= 1
        if self._left:
            return self._gradient(request.round)
        self._trainer.end_round()
        statistics = self._trainer.theta()[self._trainer.statistics]
        return Statistics(request.round, statistics, stats=self._machine.stats(request.round))

    def _gradient(self, round_: int) -> Message:
        self._trainer.backward()
        return Gradient(round_, self._trainer.flat_gradient())


def _completed(reply: Message, shared: Tensor, statistics: Tensor) -> Message:
    """A machine's model: the shared one with the machine's own statistics."""
    model = shared.masked_scatter(statistics, reply.vector)
    return replace(reply, content=model)
