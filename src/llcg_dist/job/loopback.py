"""All machines in the server's own process: the machines' environment, and the server's links to them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.comm.codec import Codec
from llcg_dist.comm.ledger import Ledger
from llcg_dist.comm.loopback import LoopbackTransport
from llcg_dist.comm.remote_rows import FeatureTraffic, LoopbackRows
from llcg_dist.config.schema import Config
from llcg_dist.data.views import RowSource
from llcg_dist.job.devices import use_device
from llcg_dist.job.evaluation_process import EvaluationProcess
from llcg_dist.job.handshake import MachineStart
from llcg_dist.job.returning import Placed, begin_again
from llcg_dist.job.script import read_script
from llcg_dist.records.rows import Row


class LoopbackEnvironment:
    """Machines of one process see each other's features through `features`, by part."""

    def __init__(self, device: str, algorithm: Algorithm, features: dict[int, Tensor]) -> None:
        self.device, self.ledger, self._features = device, Ledger(algorithm.allowed_messages), features

    def took_part(self, part: int, run_dir: Path) -> None: ...

    def remote_rows(self, part: int, rank_of_part: list[int], own: Tensor, fetched: FeatureTraffic) -> RowSource:
        self._features[part] = own
        return LoopbackRows(self._features, fetched)


class LoopbackHub:
    """The server's links to machines that live in its own process and answer at once."""

    evaluation_process: EvaluationProcess | None = None

    def __init__(self, config: Config, algorithm: Algorithm) -> None:
        self._config, self._algorithm = config, algorithm
        self.num_machines, self.device = algorithm.num_machines, use_device(config.cluster.device)
        self.ledger, self._features = Ledger(algorithm.allowed_messages), dict[int, Tensor]()
        self._machines = [self._machine() for _ in range(self.num_machines)]
        self._replies: dict[int, dict[str, Any]] = {}

    def _machine(self) -> MachineStart:
        environment = LoopbackEnvironment(self.device, self._algorithm, self._features)
        return MachineStart(self._config, build_algorithm(self._config), environment)  # one each, as processes have

    def send(self, content: dict[str, Any], rank: int) -> None:
        reply = self._machines[rank - 1].answer(content)
        if reply is not None:
            self._replies[rank] = reply

    def receive(self, rank: int) -> dict[str, Any]:
        return self._replies.pop(rank)

    def refuse(self, reason: str) -> None: ...

    def placed(self, placed: Placed) -> None:
        self._placed = placed

    def transport(self, rank_of_part: Sequence[int], codec: Codec) -> LoopbackTransport:
        channels = [self._machines[rank - 1].channel for rank in rank_of_part]
        machines, script = [channel for channel in channels if channel is not None], self._config.cluster.script
        if script is None:
            return LoopbackTransport(machines)
        losses = read_script(Path(script), self.num_machines)
        return LoopbackTransport(machines, losses, lambda part: begin_again(self._machine(), self._placed, part))

    def audit(self, start_round: int) -> Row | None:
        return None

    def finished_before(self, run_dir: Path) -> None: ...
