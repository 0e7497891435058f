"""Where a run starts: anew, or after the checkpoints of a round."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.config.algorithm import FILL
from llcg_dist.config.schema import Config
from llcg_dist.training.speed_plan import balanced_steps, measured_speeds, shares


@dataclass(frozen=True)
class Start:
    """How a run starts, the same at every rank."""

    round: int
    """The round whose checkpoints the run goes on from; 0: none."""
    planned_rounds: int
    """The rounds that the run had when it was first started."""
    recorded: int = 0
    """The rounds that were recorded when the server saved that one; those after them are recorded once more."""
    elapsed: float = 0.0
    """Seconds that the run has taken until then."""
    over: bool = False
    """The user wants to start over (resume=fresh): what is there is removed."""
    lost: list[int] = field(default_factory=list)
    """Parts that have no checkpoint of the round."""
    class_shares: list[float] | None = None
    """Of all training nodes, for the calibrated loss: all that a machine is told about the labels of other parts."""
    fill_ratio: float | None = None
    """S=fill: steps of the server that take as long as a local step; None: not known yet, or not needed."""
    speeds: list[float] | None = None
    """balance_speed: of every part's machine; None: not known yet, or not needed."""
    returning: bool = False
    """A machine begins anew while the others train."""

    def of_return(self, part: int) -> "Start":
        """For a machine of this part that begins while the others train: it has nothing to go on from, and leaves the
        files of the part alone until it knows the round."""
        return replace(self, lost=[part], over=False, returning=True)

    def lacks_fill_ratio(self, config: Config) -> bool:
        return config.algorithm.S == FILL and self.fill_ratio is None

    def measures_steps(self, config: Config) -> bool:
        """Whether every machine takes trial steps before the first round: S=fill, and balance_speed, need to know how
        long they take."""
        return self.lacks_fill_ratio(config) or (config.algorithm.balance_speed and self.speeds is None)

    def with_speeds(self, config: Config, step_seconds: Sequence[float]) -> "Start":
        """`step_seconds`: of a local step at every part's machine."""
        balances = config.algorithm.balance_speed
        return replace(self, speeds=self.speeds or measured_speeds(step_seconds)) if balances else self

    def shares(self, num_machines: int) -> list[float]:
        """What each machine takes of a round's local steps, as a multiple of their number."""
        return shares(self.speeds) if self.speeds else [1.0] * num_machines

    def local_steps(self, algorithm: Algorithm, part: int) -> list[int]:
        """Of a part's machine, in rounds 1..R."""
        planned = algorithm.local_steps(self.planned_rounds)
        return balanced_steps(planned, self.shares(algorithm.num_machines)[part]) if self.speeds else planned


def checkpoint_folder(config: Config, run_dir: Path) -> Path:
    return Path(config.checkpoint.dir) if config.checkpoint.dir else run_dir / "checkpoints"
