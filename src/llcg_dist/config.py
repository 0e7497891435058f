"""Settings: typed schema, composition with Hydra, and the checks that span several fields.

The dataclasses below are the schema behind `conf/`: unknown keys and wrong types fail when composed. The text under
each field is what `llcg train --help` prints. `conf/` holds the presets, one file per choice of a group.
"""

import ast
import dataclasses
import hashlib
import importlib.resources
import inspect
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from omegaconf import MISSING, OmegaConf

from llcg_dist.dataset_config import DATASETS, DatasetConfig, check_name
from llcg_dist.dataset_config import SyntheticConfig as SyntheticConfig
from llcg_dist.errors import UserError


@dataclass
class PartitionConfig:
    method: str = "metis"
    """metis (few cut edges) or random."""
    seed: int = 0
    """Seed of the partitioner; apart from `seed`, so that seeds sweep over the same parts."""
    root: str = "partitions"
    """Folder that holds the partition stores."""


@dataclass
class ModelConfig:
    name: str = "sage"
    arch: str | None = None
    """Layer by layer: G (GCN), S (SAGE), L (linear), B (BatchNorm), e.g. SBSBS. Default: from name, layers, norm."""
    hidden: int = 64
    layers: int = 2
    dropout: float = 0.5
    norm: str = "batch"
    """batch (BatchNorm between layers; appnp: of the features, as the paper has it) or none."""
    input_norm: bool = False
    """BatchNorm of the features before the first layer, without affine weights: a leading B."""
    gcn_norm: str = "symmetric"
    """Normalisation of G: symmetric (D^-1/2 A D^-1/2) or row (D^-1 A), self-loops included."""
    heads: int = 1
    """Attention heads of gat; they share `hidden`."""
    teleport: float = 0.2
    """beta, the share of its first state that a node of appnp returns to at every propagation."""


@dataclass
class AlgorithmConfig:
    name: str = MISSING
    K: float = 8.0
    """Local steps a round; with schedule=equal_total their mean over the rounds."""
    rho: float = 1.0
    """Growth of the local steps: round r takes K*rho^r."""
    S: int = 0
    """Correction steps of the server a round."""
    schedule: str = "equal_total"
    """equal_total (K*R steps in all, whatever rho) or literal (K*rho^r as it stands)."""
    max_local_steps: int | None = None
    """Upper limit on the local steps of one round."""
    batchnorm_stats: str = "average"
    """average (of the machines' running statistics) or recalibrate (one pass over the whole graph at the server)."""
    averaging: str = "uniform"
    """uniform (1/P each) or train_nodes (weighted by the parts' training nodes)."""


@dataclass
class TrainConfig:
    local_lr: float = 1e-2
    """eta, the machines' learning rate."""
    server_lr: float = 1e-2
    """gamma, the learning rate of the server's correction."""
    local_batch_size: int = 64
    server_batch_size: int = 256
    optimizer: str = "adam"
    """adam or sgd, at the machines and at the server."""
    optimizer_state: str = "keep"
    """keep the optimiser's state across rounds, or reset it at the start of each."""
    weight_decay: float = 0.0


@dataclass
class SamplingConfig:
    fanout: Any = 10
    """Neighbours a machine samples per node and layer: one number, or one per layer as [10,5]; -1 takes all."""
    server_fanout: Any = -1
    """The same for the server's correction."""


@dataclass
class EvaluateConfig:
    every: int = 1
    """Score the model on the whole graph every N rounds and at the end; 0 turns evaluation off."""
    chunk: int = 65_536
    """Nodes that evaluation computes at a time (fewer where they have more than 8 neighbours on average)."""
    scratch: str | None = None
    """Folder for the hidden states of a graph whose states exceed memory; by default they stay in memory."""


@dataclass
class CheckpointConfig:
    every: int = 1
    """Save every N rounds and at the end; 0 turns checkpoints off."""
    keep: int = 2
    """How many whole checkpoints stay on the disk."""
    dir: str | None = None
    """Folder of the checkpoints; default <run_dir>/checkpoints. May be a disk of each host's own."""


@dataclass
class ClusterConfig:
    num_machines: int = 4
    """P, the number of parts and of local machines."""
    backend: str = "auto"
    """auto, gloo, nccl, or loopback (all machines in one process, for tests and sweeps; same bits)."""
    device: str = "auto"
    """auto, cpu or cuda."""
    threads: int = 1
    """CPU threads of each rank."""
    timeout: float = 120.0
    """Seconds a rank may be silent (not: a round may take) before the job fails and names it."""
    join_timeout: float = 600.0
    """Seconds to wait for all ranks to join and to be ready."""
    max_restarts: int = 0
    """How often a failed job is started again; it goes on from its last whole checkpoint."""


@dataclass
class Config:
    dataset: DatasetConfig = field(default_factory=DatasetConfig)
    partition: PartitionConfig = field(default_factory=PartitionConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    algorithm: AlgorithmConfig = field(default_factory=AlgorithmConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    evaluate: EvaluateConfig = field(default_factory=EvaluateConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    num_rounds: int = 20
    """R, the rounds of communication."""
    seed: int = 0
    """Seed of the model's initial weights, the mini-batches, the sampling and dropout."""
    on_nonfinite: str = "fail"
    """When a machine sends NaN or infinity: fail, or skip (average the others, and give it the good model)."""
    resume: str = "auto"
    """auto (continue an unfinished run in run_dir), must (fail where there is nothing to continue) or never."""
    verify: str = "full"
    """What is checked of a stored graph before it is used: full (sizes and checksums) or sizes."""
    run_dir: str | None = None
    """Folder of the run's records; default runs/<date>_<time>_<dataset>_<algorithm>."""


_CHOSEN_BY_GROUP = {"dataset.source", "partition.method", "model.name", "algorithm.name"}

# Settings that say where a job runs, not what it computes: ranks on different hosts may differ in them.
_PLACES = {"run_dir", "partition.root", "dataset.root", "checkpoint.dir", "evaluate.scratch"}

# Settings that may also change when a run is resumed; the model it ends with stays the same.
_RESUMABLE = _PLACES | {
    "resume", "verify", "checkpoint.every", "checkpoint.keep", "cluster.backend", "cluster.device", "cluster.threads",
    "cluster.timeout", "cluster.join_timeout", "cluster.max_restarts",
}  # fmt: skip

_LAYER_OF_MODEL = {"sage": "S", "gcn": "G", "mlp": "L"}
_OTHER_MODELS = ("gat", "appnp", "resgcn", "skip_sage")

_CHOICES = {
    "partition.method": ("metis", "random"),
    "model.name": (*_LAYER_OF_MODEL, "arch", *_OTHER_MODELS),
    "model.norm": ("batch", "none"),
    "model.gcn_norm": ("symmetric", "row"),
    "algorithm.schedule": ("equal_total", "literal"),
    "algorithm.batchnorm_stats": ("average", "recalibrate"),
    "algorithm.averaging": ("uniform", "train_nodes"),
    "train.optimizer": ("adam", "sgd"),
    "train.optimizer_state": ("keep", "reset"),
    "on_nonfinite": ("fail", "skip"),
    "verify": ("full", "sizes"),
    "resume": ("auto", "must", "never"),
    "cluster.backend": ("auto", "gloo", "nccl", "loopback"),
    "cluster.device": ("auto", "cpu", "cuda"),
}


def load_config(overrides: Sequence[str]) -> Config:
    """Composes conf/config.yaml with the overrides, checks types and rules, and returns plain dataclasses."""
    _register_schema()
    GlobalHydra.instance().clear()
    conf = importlib.resources.files("llcg_dist.conf")
    try:
        with initialize_config_dir(str(conf), version_base="1.3"):
            composed = compose("config", overrides=list(overrides))
        config = cast(Config, OmegaConf.to_object(composed))
        _require_known(OmegaConf.to_container(composed), config)
    except UserError:
        raise
    except Exception as error:  # Hydra raises its own errors, OmegaConf's, ANTLR's, and bare assertions
        raise UserError(_explain(error)) from None
    validate(config)
    return config


def validate(config: Config) -> None:
    """Raises UserError for the first setting that cannot work, naming the key and the rule."""
    for key, choices in _CHOICES.items():
        _require(_value(config, key) in choices, config, key, "must be one of " + ", ".join(choices))
    for key in ("num_rounds", "cluster.num_machines", "cluster.threads", "train.local_batch_size", "checkpoint.keep"):
        _require(_value(config, key) >= 1, config, key, "must be at least 1")
    for key in ("train.server_batch_size", "model.hidden", "model.layers", "model.heads", "evaluate.chunk"):
        _require(_value(config, key) >= 1, config, key, "must be at least 1")
    for key in (
        "seed",
        "partition.seed",
        "dataset.seed",
        "algorithm.S",
        "evaluate.every",
        "train.weight_decay",
        "checkpoint.every",
        "cluster.max_restarts",
    ):
        _require(_value(config, key) >= 0, config, key, "must not be negative")
    for key in ("train.local_lr", "train.server_lr", "cluster.timeout", "cluster.join_timeout", "algorithm.rho"):
        _require(0 < _value(config, key) < float("inf"), config, key, "must be a positive number")
    check_name(config.dataset)
    algorithm = config.algorithm
    _require(0 <= config.model.dropout < 1, config, "model.dropout", "must lie in [0, 1)")
    _require(0 < algorithm.K < float("inf"), config, "algorithm.K", "must be a positive number of local steps")
    if algorithm.schedule == "equal_total":
        rule = "must be at least 1 with schedule=equal_total (every round takes a step)"
        _require(algorithm.K >= 1, config, "algorithm.K", rule)
    if algorithm.max_local_steps is not None:
        _require(algorithm.max_local_steps >= 1, config, "algorithm.max_local_steps", "must be at least 1")
    if algorithm.name in ("psgd_pa", "single"):
        rule = f"must be 0: {algorithm.name} has no correction; use algorithm=llcg"
        _require(algorithm.S == 0, config, "algorithm.S", rule)
    if algorithm.name == "server_only":
        _require(algorithm.S >= 1, config, "algorithm.S", "must be at least 1: server_only does nothing else")
    _check_model(config)


def arch_string(config: ModelConfig) -> str:
    """The model layer by layer: model=sage with two layers and BatchNorm is SBS."""
    if config.arch:
        return config.arch
    between = "B" if config.norm == "batch" else ""
    return ("B" if config.input_norm else "") + between.join(_LAYER_OF_MODEL[config.name] * config.layers)


def message_passing_layers(config: ModelConfig) -> int:
    """How many layers read neighbours."""
    if config.name in _OTHER_MODELS:
        return config.layers
    return sum(letter in "GS" for letter in arch_string(config))


def _check_model(config: Config) -> None:
    model = config.model
    if model.name in _OTHER_MODELS:
        _require(model.arch is None, config, "model.arch", f"model={model.name} has no arch; use model=arch")
    else:
        _check_arch(config)
    _require(0 <= model.teleport <= 1, config, "model.teleport", "must lie in [0, 1]")
    if model.name == "gat":
        rule = f"must divide model.hidden={model.hidden}, which the heads share"
        _require(model.hidden % model.heads == 0, config, "model.heads", rule)
    depth = message_passing_layers(model)
    for key in ("sampling.fanout", "sampling.server_fanout"):
        fanout = _value(config, key)
        _require(_is_fanout(fanout), config, key, "must be -1 or a positive whole number, or a list of them")
        rule = f"must be one number, or one for each of the model's {depth} message-passing layers"
        _require(not isinstance(fanout, list) or len(fanout) == depth, config, key, rule)


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
        _require(not model.input_norm, config, "model.input_norm", rule)


def _is_fanout(value: Any) -> bool:
    values = value if isinstance(value, list) and value else [value]
    return all(isinstance(v, int) and not isinstance(v, bool) and (v == -1 or v >= 1) for v in values)


def _require(holds: bool, config: Config, key: str, rule: str) -> None:
    if not holds:
        raise UserError(f"{key}={_value(config, key)}: {rule}")


def _value(config: Config, key: str) -> Any:
    value: Any = config
    for name in key.split("."):
        value = getattr(value, name)
    return value


def flat_items(config: Any, prefix: str = "") -> dict[str, Any]:
    """The settings as {dotted key: value}."""
    items: dict[str, Any] = {}
    for f in dataclasses.fields(config):
        value = getattr(config, f.name)
        if dataclasses.is_dataclass(value):
            items |= flat_items(value, f"{prefix}{f.name}.")
        else:
            items[prefix + f.name] = value
    return items


def fingerprint(config: Any, ignore: set[str] = _PLACES) -> str:
    """A short hash of settings; two ranks, or a store and its reader, with the same one mean the same thing."""
    items = {key: value for key, value in flat_items(config).items() if key not in ignore}
    return hashlib.sha256(json.dumps(items, sort_keys=True).encode()).hexdigest()[:16]


def resume_conflicts(old: dict[str, Any], new: Config) -> list[str]:
    """What keeps `new` from continuing a run of the settings `old` (as config.yaml holds them): a line per key."""
    now = flat_items(new)
    before = _flat_dict(old)
    differing = [key for key in {*now, *before} if now.get(key) != before.get(key) and key not in _RESUMABLE]
    if (
        "num_rounds" in differing
        and isinstance(before.get("num_rounds"), int)
        and new.num_rounds > before["num_rounds"]
    ):
        differing.remove("num_rounds")
    return [f"{key} ({before.get(key)} there, {now.get(key)} here)" for key in sorted(differing)]


def _flat_dict(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    items: dict[str, Any] = {}
    for key, value in nested.items():
        items |= _flat_dict(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return items


def to_yaml(config: Config) -> str:
    return OmegaConf.to_yaml(OmegaConf.structured(config))


def describe() -> Iterator[tuple[str, str, Any, str]]:
    """Every key as (dotted key, type, default, help), the help taken from the text under the field."""
    yield from _describe(Config, "")


def _describe(schema: type, prefix: str) -> Iterator[tuple[str, str, Any, str]]:
    texts = _field_texts(schema)
    for f in dataclasses.fields(schema):
        if f.name == "dataset":
            of_any_source = [entry for source in DATASETS.values() for entry in _describe(source, "dataset.")]
            yield from sorted({entry[:2]: entry for entry in reversed(of_any_source)}.values(), key=of_any_source.index)
        elif isinstance(f.type, type) and dataclasses.is_dataclass(f.type):
            yield from _describe(f.type, f"{prefix}{f.name}.")
        elif f"{prefix}{f.name}" not in _CHOSEN_BY_GROUP:
            type_name = f.type.__name__ if isinstance(f.type, type) else str(f.type)
            yield f"{prefix}{f.name}", type_name, f.default, texts.get(f.name, "")


def _field_texts(schema: type) -> dict[str, str]:
    texts: dict[str, str] = {}
    for base in reversed([c for c in schema.__mro__ if dataclasses.is_dataclass(c)]):
        body = cast(ast.ClassDef, ast.parse(inspect.getsource(base)).body[0]).body
        for here, after in zip(body, body[1:], strict=False):
            if (
                isinstance(here, ast.AnnAssign)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
            ):
                texts[cast(ast.Name, here.target).id] = str(after.value.value)
    return texts


def _register_schema() -> None:
    store = ConfigStore.instance()
    store.store(name="schema", node=Config)
    for name, schema in DATASETS.items():
        store.store(group="dataset/schema", name=name, node=schema, package="dataset")


def _explain(error: Exception) -> str:
    """Hydra's messages run over several lines and end in its search path; a user needs the key and the cause."""
    text = str(error) if error.__cause__ is None else f"{error} {error.__cause__}"
    text = " ".join(text.split())
    unknown = re.search(r"Key '[^']+' (?:is )?not in '\w+'.* full_key: (\S+)", text)
    if unknown:
        return f"unknown key {unknown[1]}; `llcg train --help` lists the keys"
    wrong_type = re.search(r"Value '(.*)' of type '\w+' could not be converted to (\w+) full_key: (\S+)", text)
    if wrong_type:
        return f"{wrong_type[3]}={wrong_type[1]}: must be of type {wrong_type[2].lower()}"
    no_option = re.search(
        r"Could not find '([^']+)/([^']+)' Available options in '[^']+': (.*?)(?: Config search|$)", text
    )
    if no_option:
        group, option, options = no_option.groups()
        return f"{group}={option}: must be one of {', '.join(options.split())}"
    override = getattr(error, "override", None)
    if override:
        return f"{override}: cannot be read as a setting (key=value in Hydra's grammar)"
    return f"settings: {text.split(' Config search path')[0] or type(error).__name__}"


def _require_known(composed: Any, config: Any, prefix: str = "") -> None:
    """Hydra's +key=value adds what no schema knows, to be ignored ever after."""
    known = {f.name for f in dataclasses.fields(config)}
    for key, value in composed.items():
        if key not in known:
            raise UserError(f"unknown key {prefix}{key}; `llcg train --help` lists the keys")
        if dataclasses.is_dataclass(getattr(config, key)):
            _require_known(value, getattr(config, key), f"{prefix}{key}.")


def quoted_override(key: str, value: str) -> str:
    """key=value for Hydra's grammar, whatever characters the value holds."""
    escaped = re.sub(r"(\\*)('|\$\{)", r"\1\1\\\2", value)
    escaped = re.sub(r"(\\+)$", r"\1\1", escaped)
    return f"{key}='{escaped}'"
