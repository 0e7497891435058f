"""Facts that follow from the settings alone: whether the server corrects, the model's depth, where BatchNorm stands."""

import re

from llcg_dist.config.schema import AUTO, BEST, Config, ModelConfig

LAYER_LETTER_OF_MODEL = {"sage": "S", "gcn": "G", "mlp": "L"}
"""Models that repeat one layer, and that layer's letter in an arch string."""
MODELS_WITHOUT_ARCH = ("gat", "appnp", "resgcn", "skip_sage")
"""Models that have a builder of their own, and that model.arch cannot spell."""


def corrects(config: Config) -> bool:
    """Whether the server may take correction steps."""
    return config.algorithm.S == AUTO or config.algorithm.S > 0


def scored_statistics(config: Config) -> tuple[str, ...]:
    """The kinds of BatchNorm running statistics (average, recalibrate) that the server evaluates the model with."""
    kind = config.algorithm.batchnorm_stats
    if has_batchnorm(config.model) and (config.evaluate.both_statistics or kind == BEST):
        return "average", "recalibrate"
    return ("recalibrate" if kind == BEST else kind,)


def arch_string(config: ModelConfig) -> str:
    """The model as a string with a letter per layer: model=sage with two layers and BatchNorm between them is SBS."""
    if config.arch:
        return config.arch
    between = "B" if config.norm == "batch" else ""
    return ("B" if config.input_norm else "") + between.join(LAYER_LETTER_OF_MODEL[config.name] * config.layers)


def message_passing_layers(config: ModelConfig) -> int:
    """How many layers aggregate over neighbours; a mini-batch has one block for each."""
    if config.name in MODELS_WITHOUT_ARCH:
        return config.layers
    return sum(letter in "GS" for letter in arch_string(config))


def has_batchnorm(config: ModelConfig) -> bool:
    """Whether the model has a BatchNorm layer."""
    if config.name in MODELS_WITHOUT_ARCH:
        between = config.norm == "batch" and not (config.name == "gat" and config.layers == 1)
        return between or config.input_norm
    return "B" in arch_string(config)


def has_batchnorm_after_message_passing(config: ModelConfig) -> bool:
    """Whether a BatchNorm comes after the last message-passing layer, where only the rows of the seeds are left."""
    if config.name in ("gat", "appnp") or not has_batchnorm(config):
        return False
    if config.name in MODELS_WITHOUT_ARCH:  # resgcn and skip_sage end in linear layers
        return config.norm == "batch"
    return "B" in re.split("[GS]", arch_string(config))[-1]
