"""Validation of composed settings, of single keys and of their combinations. A UserError names the key and the rule."""

from pathlib import Path
from typing import Any

from llcg_dist.config.datasets import check_name
from llcg_dist.config.facts import (
    LAYER_LETTER_OF_MODEL,
    MODELS_WITHOUT_ARCH,
    arch_string,
    corrects,
    has_batchnorm,
    message_passing_layers,
)
from llcg_dist.config.schema import AUTO, BEST, Config
from llcg_dist.errors import UserError

_LOGGERS = ("tensorboard", "mlflow", "wandb")

# The values that a key may have.
_CHOICES = {
    "partition.method": ("metis", "random"),
    "model.name": (*LAYER_LETTER_OF_MODEL, "arch", *MODELS_WITHOUT_ARCH),
    "model.norm": ("batch", "none"),
    "model.gcn_norm": ("symmetric", "row"),
    "algorithm.schedule": ("equal_total", "literal"),
    "algorithm.batchnorm_stats": ("average", "recalibrate", BEST),
    "algorithm.averaging": ("uniform", "train_nodes"),
    "algorithm.server_optimizer": ("plain", "momentum", "nesterov", "adam"),
    "algorithm.exchange_dtype": ("float32", "bfloat16", "int8"),
    "sampling.method": ("neighbor", "labor"),
    "sampling.server_minibatch": ("uniform", "cut_edges"),
    "train.optimizer": ("adam", "sgd"),
    "train.optimizer_state": ("keep", "reset"),
    "train.local_loss": ("plain", "calibrated"),
    "train.lr_schedule": ("constant", "cosine", "warmup", "warmup_cosine"),
    "train.lr_unit": ("rounds", "steps"),
    "on_nonfinite": ("fail", "skip"),
    "verify": ("full", "sizes"),
    "resume": ("auto", "must", "never"),
    "cluster.backend": ("auto", "gloo", "nccl", "loopback"),
    "cluster.device": ("auto", "cpu", "cuda"),
    "cluster.start": ("auto", "fork", "spawn"),
}

_AT_LEAST_1 = (
    "num_rounds", "cluster.num_machines", "train.local_batch_size", "checkpoint.keep", "train.server_batch_size",
    "model.hidden", "model.layers", "model.heads", "evaluate.chunk",
)  # fmt: skip
_NOT_NEGATIVE = (
    "seed", "partition.seed", "dataset.seed", "evaluate.every", "train.weight_decay", "checkpoint.every",
    "cluster.max_restarts", "cluster.threads",
)  # fmt: skip
_POSITIVE = ("train.local_lr", "train.server_lr", "cluster.timeout", "cluster.join_timeout", "algorithm.rho")

# Above these a job would run out of memory or crash inside a library, without a message that helps.
_AT_MOST = {"num_rounds": 10_000_000, "cluster.threads": 1024, "model.layers": 1000, "train.weight_decay": 1e9}


def validate(config: Config) -> None:
    """Raises UserError for the first setting that cannot work, naming the key and the rule."""
    _check_choices_and_ranges(config)
    check_name(config.dataset)
    require(_is_logger(config.logger), config, "logger", f"must be auto, none, or some of {', '.join(_LOGGERS)}")
    _check_diagnostics(config)
    _check_correction_steps(config)
    require(0 <= config.model.dropout < 1, config, "model.dropout", "must lie in [0, 1)")
    _check_local_steps(config)
    _check_method(config)
    require(0 <= config.train.lr_warmup < 1, config, "train.lr_warmup", "must lie in [0, 1)")
    _check_server_optimizer(config)
    if config.run_dir and Path(config.run_dir).resolve() == Path(config.partition.root).resolve():
        raise UserError(
            f"run_dir={config.run_dir}: must not be partition.root; records and parts need folders of their own"
        )
    _check_audit(config)
    _check_model(config)
    _check_evaluation(config)


def _check_choices_and_ranges(config: Config) -> None:
    for key, choices in _CHOICES.items():
        require(_setting(config, key) in choices, config, key, "must be one of " + ", ".join(choices))
    for key in _AT_LEAST_1:
        require(_setting(config, key) >= 1, config, key, "must be at least 1")
    for key in _NOT_NEGATIVE:
        require(_setting(config, key) >= 0, config, key, "must not be negative")
    for key in _POSITIVE:
        require(0 < _setting(config, key) < float("inf"), config, key, "must be a positive number")
    for key, limit in _AT_MOST.items():
        require(_setting(config, key) <= limit, config, key, f"must be at most {limit:,}")


def _check_correction_steps(config: Config) -> None:
    algorithm = config.algorithm
    rule = "must be a whole number, not negative, or auto"
    require(algorithm.S == AUTO or (_is_integer(algorithm.S) and algorithm.S >= 0), config, "algorithm.S", rule)
    require(algorithm.S_max >= 1, config, "algorithm.S_max", "must be at least 1")


def _check_local_steps(config: Config) -> None:
    algorithm = config.algorithm
    require(0 < algorithm.K < float("inf"), config, "algorithm.K", "must be a positive number of local steps")
    if algorithm.schedule == "equal_total":
        rule = "must be at least 1 with schedule=equal_total (every round takes a step)"
        require(algorithm.K >= 1, config, "algorithm.K", rule)
    if algorithm.max_local_steps is not None:
        require(algorithm.max_local_steps >= 1, config, "algorithm.max_local_steps", "must be at least 1")


def _check_method(config: Config) -> None:
    """Settings of single methods; what a method rules out is its own to say (Algorithm.check)."""
    algorithm = config.algorithm
    require(algorithm.feature_cache >= 0, config, "algorithm.feature_cache", "must not be negative")
    rule = "must be a positive share of a part's nodes, such as 0.1"
    require(0 < algorithm.storage_overhead < float("inf"), config, "algorithm.storage_overhead", rule)


def _check_evaluation(config: Config) -> None:
    if config.evaluate.both_statistics:
        rule = "the model has no BatchNorm, so there is one score only; leave it off"
        require(has_batchnorm(config.model), config, "evaluate.both_statistics", rule)
        rule = "nothing is scored with evaluate.every=0; leave it off"
        require(config.evaluate.every > 0, config, "evaluate.both_statistics", rule)


def _check_audit(config: Config) -> None:
    cluster = config.cluster
    rules = {
        "loopback": "cluster.backend=loopback opens no sockets; use cluster.backend=gloo",
        "nccl": "NCCL's bytes do not all pass through sockets that the kernel counts; use cluster.backend=gloo",
    }
    require(not cluster.audit or cluster.backend not in rules, config, "cluster.audit", rules.get(cluster.backend, ""))


def _check_server_optimizer(config: Config) -> None:
    algorithm = config.algorithm
    require(0 <= algorithm.server_momentum < 1, config, "algorithm.server_momentum", "must lie in [0, 1)")
    if algorithm.server_step is not None:
        require(0 < algorithm.server_step < float("inf"), config, "algorithm.server_step", "must be a positive number")
        rule = "has no effect with server_optimizer=plain, which takes the average as it is"
        require(algorithm.server_optimizer != "plain", config, "algorithm.server_step", rule)


def _check_diagnostics(config: Config) -> None:
    require(config.diagnostics.every >= 0, config, "diagnostics.every", "must not be negative")
    for name, minimum in (("repeats", 2), ("chunk", 1), ("hessian_steps", 1)):
        key = f"diagnostics.{name}"
        require(_setting(config, key) >= minimum, config, key, f"must be at least {minimum}")


def _check_model(config: Config) -> None:
    model = config.model
    if model.name in MODELS_WITHOUT_ARCH:
        require(model.arch is None, config, "model.arch", f"model={model.name} has no arch; use model=arch")
    else:
        _check_arch(config)
    require(0 <= model.teleport <= 1, config, "model.teleport", "must lie in [0, 1]")
    if model.name == "gat":
        rule = f"must divide model.hidden={model.hidden}, which the heads share"
        require(model.hidden % model.heads == 0, config, "model.heads", rule)
    if has_batchnorm(model):
        rule = "must be at least 2: BatchNorm cannot normalise a batch of one row; or use model.norm=none"
        single_row = corrects(config) and config.train.server_batch_size < 2
        require(not single_row, config, "train.server_batch_size", rule)
        halves_of_one_row = config.algorithm.S == AUTO and config.train.server_batch_size < 4
        rule = "must be at least 4 with algorithm.S=auto, which compares two halves of a batch"
        require(not halves_of_one_row, config, "train.server_batch_size", rule)
    depth = message_passing_layers(model)
    for key in ("sampling.fanout", "sampling.server_fanout"):
        fanout = _setting(config, key)
        rule = "must be -1, a positive whole number or a share between 0 and 1, or a list of them"
        require(_is_fanout(fanout), config, key, rule)
        rule = f"must be one number, or one for each of the model's {depth} message-passing layers"
        require(not isinstance(fanout, list) or len(fanout) == depth, config, key, rule)


def _check_arch(config: Config) -> None:
    model = config.model
    if model.name == "arch" and not model.arch:
        raise UserError("model.arch: must be set with model=arch, e.g. model.arch=SBSBS")
    arch = arch_string(model)
    if not set(arch) <= set("GSLB") or not set(arch) & set("GSL"):
        rule = "must be made of G (GCN), S (SAGE), L (linear) and B (BatchNorm), with at least one of G, S, L"
        raise UserError(f"model.arch={arch}: {rule}")
    if model.arch:
        rule = "has no effect on a model that is spelled out; write a leading B into model.arch"
        require(not model.input_norm, config, "model.input_norm", rule)


def _is_logger(value: Any) -> bool:
    return value in ("auto", "none", *_LOGGERS) or (isinstance(value, list) and all(name in _LOGGERS for name in value))


def _is_fanout(value: Any) -> bool:
    """Whether this is -1, a positive integer, a share in (0, 1), or a list of such values with one per layer."""
    values = value if isinstance(value, list) and value else [value]
    return all(_is_count(v) or (isinstance(v, float) and 0 < v < 1) for v in values)


def _is_count(value: Any) -> bool:
    return _is_integer(value) and (value == -1 or value >= 1)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def require(holds: bool, config: Config, key: str, rule: str) -> None:
    """Raises UserError with the setting and the rule that it breaks."""
    if not holds:
        raise UserError(f"{key}={_setting(config, key)}: {rule}")


def _setting(config: Config, key: str) -> Any:
    value: Any = config
    for name in key.split("."):
        value = getattr(value, name)
    return value
