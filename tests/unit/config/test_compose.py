"""Settings: every choice composes, every mistake is one line that names its key."""

import dataclasses
import importlib.resources
import json
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from llcg_dist.algorithms import build_algorithm
from llcg_dist.cli.help import describe
from llcg_dist.config.compare import fingerprint, flat_items
from llcg_dist.config.compose import load_config, quoted_override, to_yaml
from llcg_dist.config.datasets import DATASETS
from llcg_dist.config.rules import validate
from llcg_dist.config.schema import Config
from llcg_dist.data.partition import store_path
from llcg_dist.errors import UserError

CONF = Path(str(importlib.resources.files("llcg_dist.conf")))
OPTIONS = sorted(f"{file.parent.name}={file.stem}" for file in CONF.glob("*/*.yaml"))
DEFAULT = load_config([])


def set_value(config: Config, key: str, value: Any) -> None:
    *groups, name = key.split(".")
    owner: Any = config
    for group in groups:
        owner = getattr(owner, group)
    assert hasattr(owner, name)
    setattr(owner, name, value)


def changed(**values: Any) -> Config:
    """A copy of the defaults; `__` stands for the dot of a key."""
    copy = dataclasses.replace(DEFAULT)
    for f in dataclasses.fields(copy):
        if dataclasses.is_dataclass(getattr(copy, f.name)):
            setattr(copy, f.name, dataclasses.replace(getattr(copy, f.name)))
    for name, value in values.items():
        set_value(copy, name.replace("__", "."), value)
    return copy


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_of_every_group_composes(option: str) -> None:
    config = load_config([option])
    group, name = option.split("=")
    if group in ("algorithm", "model"):
        assert getattr(config, group).name == name
    if group == "dataset":
        assert config.dataset.source == name
    if group == "partition":
        assert config.partition.method == name
    assert store_path(config)
    assert build_algorithm(config)


def test_the_groups_are_there() -> None:
    wanted = {"algorithm=llcg", "algorithm=psgd_pa", "algorithm=single", "algorithm=server_only", "dataset=synthetic"}
    wanted |= {"model=sage", "model=gcn", "model=mlp", "model=arch", "partition=metis", "partition=random"}
    assert wanted <= set(OPTIONS)


def test_the_defaults_make_the_demo() -> None:
    assert (DEFAULT.dataset.name, DEFAULT.algorithm.name, DEFAULT.partition.method) == ("synthetic", "llcg", "metis")
    assert (DEFAULT.model.name, DEFAULT.model.layers, DEFAULT.model.hidden) == ("sage", 2, 64)
    assert (DEFAULT.algorithm.rho, DEFAULT.algorithm.S, DEFAULT.algorithm.batchnorm_stats) == (1.1, 1, "recalibrate")
    psgd_pa = load_config(["algorithm=psgd_pa"]).algorithm
    assert (psgd_pa.rho, psgd_pa.S, psgd_pa.batchnorm_stats) == (1.0, 0, "average")


def test_the_three_kinds_of_llcg() -> None:
    """The publication to the letter, with recalibration, and with everything that helps; the same class behind them."""
    paper, llcg, plus = (load_config([f"algorithm={name}"]) for name in ("llcg_paper", "llcg", "llcg_plus"))
    assert {type(build_algorithm(config)).__name__ for config in (paper, llcg, plus)} == {"Llcg"}
    as_llcg = flat_items(llcg) | {"algorithm.name": "llcg_paper", "algorithm.batchnorm_stats": "average"}
    assert flat_items(paper) == as_llcg
    own = {"algorithm.name": "llcg_plus", "algorithm.S": 4, "algorithm.batchnorm_stats": "best"}
    assert flat_items(plus) == flat_items(llcg) | own


def test_overrides_reach_their_keys() -> None:
    config = load_config(["algorithm.K=16", "sampling.fanout=[10,5]", "run_dir=a/b", "algorithm.max_local_steps=7"])
    assert (config.algorithm.K, config.sampling.fanout) == (16.0, [10, 5])
    assert (config.run_dir, config.algorithm.max_local_steps) == ("a/b", 7)


def test_loading_twice_gives_the_same_and_shares_nothing() -> None:
    first = load_config(["seed=1"])
    assert load_config(["seed=1"]) == first
    assert load_config([]) == DEFAULT
    assert first.algorithm is not load_config(["seed=1"]).algorithm


BAD_OVERRIDES: list[tuple[list[str], str]] = [
    (["algorithm.K=0"], "algorithm.K"),
    (["algorithm.K=0.5"], "algorithm.K"),
    (["algorithm.S=-1"], "algorithm.S"),
    (["algorithm.S=0.5"], "algorithm.S"),
    (["algorithm=psgd_pa", "algorithm.S=1"], "algorithm.S"),
    (["run_dir=here", "partition.root=./here"], "run_dir"),
    (["algorithm=single", "algorithm.S=1"], "algorithm.S"),
    (["algorithm=server_only", "algorithm.S=0"], "algorithm.S"),
    (["algorithm=server_only", "algorithm.server_optimizer=adam"], "algorithm.server_optimizer"),
    (["algorithm=full_sync", "algorithm.server_optimizer=momentum"], "algorithm.server_optimizer"),
    (["algorithm.server_step=0.5"], "algorithm.server_step"),
    (["algorithm.exchange_dtype=float16"], "algorithm.exchange_dtype"),
    (["algorithm=full_sync", "algorithm.exchange_dtype=int8"], "algorithm.exchange_dtype"),
    (["algorithm=single", "algorithm.exchange_dtype=bfloat16"], "algorithm.exchange_dtype"),
    (["algorithm=server_only", "algorithm.exchange_dtype=int8"], "algorithm.exchange_dtype"),
    (["algorithm=server_only", "algorithm.S=auto"], "algorithm.S"),
    (["algorithm=psgd_pa", "algorithm.S=auto"], "algorithm.S"),
    (["algorithm.S=many"], "algorithm.S"),
    (["algorithm.S=true"], "algorithm.S"),
    (["algorithm.S=null"], "algorithm.S"),
    (["algorithm.S=[1]"], "algorithm.S"),
    (["algorithm.S=auto", "algorithm.S_max=0"], "algorithm.S_max"),
    (["algorithm.S=auto", "train.server_batch_size=3"], "train.server_batch_size"),
    (["diagnostics.every=-1"], "diagnostics.every"),
    (["diagnostics.repeats=1"], "diagnostics.repeats"),
    (["algorithm=ggs", "diagnostics.every=1"], "diagnostics.every"),
    (["evaluate.both_statistics=true", "model.norm=none"], "evaluate.both_statistics"),
    (["evaluate.both_statistics=true", "evaluate.every=0"], "evaluate.both_statistics"),
    (["algorithm=fedavg"], "algorithm"),
    (["model=transformer"], "model"),
    (["model.name=transformer"], "model"),
    (["dataset=nowhere"], "dataset"),
    (["partition=spectral"], "partition"),
    (["experiment=nothing"], "experiment"),
    (["learning_rate=1"], "learning_rate"),
    (["+learning_rate=1"], "learning_rate"),
    (["train.lr=1"], "train.lr"),
    (["+train.lr=1"], "train.lr"),
    (["nothing.at.all=1"], "nothing"),
    (["num_rounds=many"], "num_rounds"),
    (["num_rounds=2.5"], "num_rounds"),
    (["num_rounds=null"], "num_rounds"),
    (["seed=true"], "seed"),
    (["model.dropout=high"], "model.dropout"),
    (["sampling.fanout=[10,10,10]"], "sampling.fanout"),
    (["sampling.server_fanout=[10]"], "sampling.server_fanout"),
    (["model=mlp", "sampling.fanout=[10]"], "sampling.fanout"),
    (["model=arch", "model.arch=null"], "model.arch"),
    (["train.local_batch_size=1"], "train.local_batch_size"),
    (["train.server_batch_size=1"], "train.server_batch_size"),
    (["model=mlp", "algorithm=single", "train.local_batch_size=1", "cluster.num_machines=1"], "train.local_batch_size"),
    (["algorithm.K=1,2"], "algorithm.K"),
    (["algorithm.K=${nowhere}"], "algorithm.K"),
    (["algorithm.K=["], "algorithm.K"),
    (["algorithm.K"], "algorithm.K"),
    (["~algorithm.K"], "algorithm.K"),
]


@pytest.mark.parametrize(("overrides", "key"), BAD_OVERRIDES, ids=lambda value: str(value))
def test_a_bad_override_is_one_line_that_names_the_key(overrides: list[str], key: str) -> None:
    with pytest.raises(UserError) as refused:
        load_config(overrides)
    message = str(refused.value)
    assert key in message
    assert len(message.splitlines()) == 1
    assert str(CONF) not in message  # where the settings are installed is no news to the user


@pytest.mark.parametrize(
    "overrides",
    [
        ["model.norm=none"],
        ["model=mlp", "model.norm=none"],
        ["model=arch", "model.arch=GLS"],
        ["model=gat", "model.layers=1"],
        ["algorithm=single", "train.server_batch_size=1"],  # P batches in one, and no correction
    ],
)
def test_batches_of_one_are_fine_where_nothing_normalises_them(overrides: list[str]) -> None:
    assert load_config(["train.local_batch_size=1", *overrides]).train.local_batch_size == 1


BAD_VALUES: list[tuple[str, Any]] = [
    *((key, 0) for key in ("num_rounds", "cluster.num_machines", "model.hidden", "model.layers")),
    *((key, 0) for key in ("train.local_batch_size", "train.server_batch_size", "algorithm.max_local_steps")),
    *(
        (key, -1)
        for key in ("seed", "partition.seed", "dataset.seed", "algorithm.S", "evaluate.every", "cluster.threads")
    ),
    ("train.weight_decay", -0.1),
    ("train.weight_decay", float("inf")),
    ("train.weight_decay", float("nan")),
    ("num_rounds", 10**11),
    ("cluster.threads", 100_000),
    ("model.layers", 100_000),
    *((key, 0.0) for key in ("train.local_lr", "train.server_lr", "cluster.timeout", "algorithm.rho", "algorithm.K")),
    *((key, float("nan")) for key in ("train.local_lr", "algorithm.rho", "algorithm.K", "model.dropout")),
    *((key, float("inf")) for key in ("train.server_lr", "algorithm.rho", "algorithm.K")),
    ("model.dropout", 1.0),
    ("model.dropout", -0.1),
    *((key, "banana") for key in ("partition.method", "model.norm", "model.gcn_norm", "algorithm.schedule")),
    *((key, "banana") for key in ("algorithm.batchnorm_stats", "algorithm.averaging", "train.optimizer")),
    *((key, "banana") for key in ("train.optimizer_state", "cluster.backend", "cluster.device", "model.arch")),
    *((key, "banana") for key in ("train.local_loss", "train.lr_schedule", "train.lr_unit")),
    ("algorithm.server_optimizer", "banana"),
    *((key, value) for key in ("train.lr_warmup", "algorithm.server_momentum") for value in (-0.1, 1.0, float("nan"))),
    *(("algorithm.server_step", value) for value in (0.0, -1.0, float("inf"), float("nan"))),
    ("model.arch", "BB"),
    ("model.arch", "sbs"),
    *(("sampling.fanout", value) for value in (0, -2, 2.5, "all", None, True, [], [5, 0], [5, -3], [[5], 5], {"a": 1})),
    *(("sampling.server_fanout", value) for value in (0, [5], [5, 5, 5])),
]


@pytest.mark.parametrize(("key", "value"), BAD_VALUES, ids=lambda value: str(value))
def test_a_value_that_cannot_work_is_one_line_that_names_the_key(key: str, value: Any) -> None:
    with pytest.raises(UserError) as refused:
        validate(changed(**{key.replace(".", "__"): value}))
    message = str(refused.value)
    assert message.startswith(f"{key}={value}: ")
    assert len(message.splitlines()) == 1


GOOD_VALUES = [
    ("algorithm.K", 1.0),
    ("algorithm.S", 0),
    ("algorithm.S", "auto"),
    ("algorithm.max_local_steps", 1),
    ("algorithm.rho", 0.5),
    ("model.dropout", 0.0),
    ("model.arch", "BSBSBL"),
    ("sampling.fanout", -1),
    ("sampling.fanout", [5, -1]),
    ("evaluate.every", 0),
    ("cluster.num_machines", 1),
]


@pytest.mark.parametrize(("key", "value"), GOOD_VALUES, ids=lambda value: str(value))
def test_the_edges_of_what_is_allowed(key: str, value: Any) -> None:
    validate(changed(**{key.replace(".", "__"): value}))


def test_a_fraction_of_a_step_is_fine_in_the_literal_schedule() -> None:
    validate(changed(algorithm__K=0.042, algorithm__schedule="literal"))


def test_an_unknown_algorithm_is_refused_however_it_is_named() -> None:
    with pytest.raises(UserError, match="algorithm") as refused:
        build_algorithm(load_config(["algorithm.name=fedavg"]))
    assert "psgd_pa" in str(refused.value)


def test_an_unknown_dataset_is_refused_however_it_is_named() -> None:
    with pytest.raises(UserError, match="dataset"):
        store_path(load_config(["dataset.name=nowhere"]))


PLACES = {"cluster.interface", "cluster.start", "run_dir", "partition.root", "checkpoint.dir", "evaluate.scratch"}


def another(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}x"


@pytest.mark.parametrize("key", flat_items(DEFAULT))
def test_the_fingerprint_is_of_what_is_computed_not_of_where(key: str) -> None:
    other = changed(seed=DEFAULT.seed)
    assert fingerprint(other) == fingerprint(DEFAULT)
    set_value(other, key, another(flat_items(DEFAULT)[key]))
    assert (fingerprint(other) == fingerprint(DEFAULT)) == (key in PLACES)


def test_help_covers_every_key_with_its_type_and_default() -> None:
    """But for the names that a group's choice sets; and the keys of every other source of graphs besides."""
    described = {key: (type_name, default, text) for key, type_name, default, text in describe()}
    chosen_by_group = {"dataset.source", "model.name", "algorithm.name", "partition.method"}
    of_sources = {f"dataset.{field.name}" for source in DATASETS.values() for field in dataclasses.fields(source)}
    assert set(described) == (set(flat_items(DEFAULT)) | of_sources) - chosen_by_group
    assert described["algorithm.K"][:2] == ("float", 8.0)
    assert described["algorithm.max_local_steps"][:2] == ("int | None", None)
    assert "correction" in described["algorithm.S"][2].lower()
    assert described["dataset.seed"][2]  # inherited from the schema of all datasets
    assert described["run_dir"][2]


def test_flat_items_go_into_json() -> None:
    items = flat_items(DEFAULT)
    assert items["algorithm.K"] == 8.0
    assert items["num_rounds"] == 20
    assert json.loads(json.dumps(items)) == items


def test_yaml_holds_every_key_and_reads_back() -> None:
    config = load_config(["sampling.fanout=[10,5]", "run_dir='a b'"])
    read = OmegaConf.to_container(OmegaConf.create(to_yaml(config)))
    assert read == dataclasses.asdict(config)


STRANGE = ["a b", "it's", 'a"b', "a=b,c", "[x]", "{x: y}", "1", "null", "é", "a\\b", "a\\'b", "x\\", "\\\\x", "${y}"]


@pytest.mark.parametrize("value", STRANGE)
def test_quoted_overrides_arrive_as_they_are(value: str) -> None:
    assert load_config([quoted_override("run_dir", value)]).run_dir == value
