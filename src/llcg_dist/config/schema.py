"""The typed settings behind `conf/`: unknown keys and wrong types fail when composed.

Every section is a dataclass that checks itself. The text under each field is what `llcg train --help` prints. `conf/`
holds the presets, one file per choice of a group.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from llcg_dist.config.algorithm import AlgorithmConfig
from llcg_dist.config.cluster import CheckpointConfig, ClusterConfig
from llcg_dist.config.dataset import DatasetConfig
from llcg_dist.config.model import ModelConfig
from llcg_dist.config.partition import PartitionConfig
from llcg_dist.config.section import Section
from llcg_dist.config.train import DiagnosticsConfig, EarlyStopConfig, EvaluateConfig, SamplingConfig, TrainConfig

LOGGERS = ("tensorboard", "mlflow", "wandb")
if TYPE_CHECKING:
    Loggers = str | list[str]
else:
    Loggers = Any  # OmegaConf knows no union with a list: Config.check does what it would do


class OnNonfinite(StrEnum):
    fail = "fail"
    skip = "skip"


class Resume(StrEnum):
    auto = "auto"
    must = "must"
    never = "never"
    fresh = "fresh"


class Verify(StrEnum):
    full = "full"
    sizes = "sizes"


@dataclass
class Config(Section):
    dataset: DatasetConfig = field(default_factory=DatasetConfig)
    partition: PartitionConfig = field(default_factory=PartitionConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    algorithm: AlgorithmConfig = field(default_factory=AlgorithmConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    evaluate: EvaluateConfig = field(default_factory=EvaluateConfig)
    early_stop: EarlyStopConfig = field(default_factory=EarlyStopConfig)
    diagnostics: DiagnosticsConfig = field(default_factory=DiagnosticsConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    num_rounds: int = 20
    """R, the number of communication rounds."""
    seed: int = 0
    """Seed of initial weights, mini-batches, neighbour sampling and dropout."""
    init_from: str | None = None
    """Initial weights: the folder of a run (its best.pt, else model.pt), or a file with a state_dict."""
    on_nonfinite: OnNonfinite = OnNonfinite.fail
    """If a machine sends NaN or infinity: fail, or skip (average the other machines and send it the new model)."""
    resume: Resume = Resume.auto
    """auto (resume an unfinished run in run_dir), must (fail if there is none), never (fail if there is one), or
    fresh (delete the records and checkpoints in run_dir and start over)."""
    verify: Verify = Verify.full
    """Check of a stored graph before it is used: full (sizes and checksums) or sizes."""
    logger: Loggers = "auto"
    """Loggers besides metrics.jsonl: tensorboard, mlflow, wandb, a list, none, or auto (tensorboard if installed)."""
    run_dir: str | None = None
    """Folder of the run's files; default runs/<date>_<time>_<dataset>_<algorithm>."""

    def check(self) -> None:
        super().check()
        self.at_least(1, "num_rounds")
        self.at_most(10_000_000, "num_rounds")
        self.at_least(0, "seed")
        listed = isinstance(self.logger, list) and all(name in LOGGERS for name in self.logger)
        known = listed or self.logger in ("auto", "none", *LOGGERS)
        self.require(known, "logger", f"must be auto, none, or some of {', '.join(LOGGERS)}")
