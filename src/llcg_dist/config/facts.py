"""What follows from settings without building anything: correction, depth of the model, BatchNorm."""

import re

from llcg_dist.config.schema import AUTO, BEST, Config, ModelConfig

LAYER_OF_MODEL = {"sage": "S", "gcn": "G", "mlp": "L"}
OTHER_MODELS = ("gat", "appnp", "resgcn", "skip_sage")


def corrects(config: Config) -> bool:
    """Whether the server may take correction steps."""
    return config.algorithm.S == AUTO or config.algorithm.S > 0


def kinds_scored(config: Config) -> tuple[str, ...]:
    """The kinds of BatchNorm statistics that a model is scored with."""
    kind = config.algorithm.batchnorm_stats
    if normalizes(config.model) and (config.evaluate.both_statistics or kind == BEST):
        return "average", "recalibrate"
    return ("recalibrate" if kind == BEST else kind,)


def arch_string(config: ModelConfig) -> str:
    """The model layer by layer: model=sage with two layers and BatchNorm is SBS."""
    if config.arch:
        return config.arch
    between = "B" if config.norm == "batch" else ""
    return ("B" if config.input_norm else "") + between.join(LAYER_OF_MODEL[config.name] * config.layers)


def message_passing_layers(config: ModelConfig) -> int:
    """How many layers read neighbours."""
    if config.name in OTHER_MODELS:
        return config.layers
    return sum(letter in "GS" for letter in arch_string(config))


def normalizes(config: ModelConfig) -> bool:
    """Whether the model has a BatchNorm."""
    if config.name in OTHER_MODELS:
        between = config.norm == "batch" and not (config.name == "gat" and config.layers == 1)
        return between or config.input_norm
    return "B" in arch_string(config)


def normalizes_the_batch_alone(config: ModelConfig) -> bool:
    """Whether a BatchNorm stands where no neighbours are left: its rows are those of the batch itself."""
    if config.name in ("gat", "appnp") or not normalizes(config):
        return False
    if config.name in OTHER_MODELS:  # resgcn and skip_sage end in linear layers
        return config.norm == "batch"
    return "B" in re.split("[GS]", arch_string(config))[-1]
