"""Where a run starts: anew, or after the checkpoints of a round."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from llcg_dist.config.algorithm import FILL
from llcg_dist.config.schema import Config


@dataclass(frozen=True)
class Start:
    """How a run starts, the same at every rank."""

    round: int
    """The round whose checkpoints the run goes on from; 0: none."""
    planned_rounds: int
    """The rounds that the run had when it was first started."""
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
    returning: bool = False
    """A machine begins anew while the others train."""

    def of_return(self, part: int) -> "Start":
        """For a machine of this part that begins while the others train: it has nothing to go on from, and leaves the
        files of the part alone until it knows the round."""
        return replace(self, lost=[part], over=False, returning=True)

    def measures_steps(self, config: Config) -> bool:
        """Whether every rank takes trial steps before the first round: S=fill needs to know how long they take."""
        return config.algorithm.S == FILL and self.fill_ratio is None and not self.returning


def checkpoint_folder(config: Config, run_dir: Path) -> Path:
    return Path(config.checkpoint.dir) if config.checkpoint.dir else run_dir / "checkpoints"
