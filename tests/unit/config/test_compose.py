"""Composition: every choice composes, overrides reach their keys, mistakes are one line without Hydra's search path."""

import dataclasses
import re

import pytest
from omegaconf import OmegaConf

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config, quoted_override, to_yaml
from llcg_dist.data.partition import store_path
from llcg_dist.errors import UserError
from tests.helpers.settings import CONF, DEFAULT, refusal

NEEDED = {
    "partition=given": ["partition.file=parts.csv"],
    "algorithm=own": ["algorithm.target=tests.helpers.own_method.CoordinateMedian"],
    "model=own": ["model.target=torch_geometric.nn.GraphSAGE"],
    "dataset=own": ["dataset.target=torch_geometric.datasets.WikiCS"],
    "dataset=pyg": ["dataset.path=data.pt"],
}
"""Settings that an option cannot do without."""
OPTIONS = sorted(f"{file.parent.name}={file.stem}" for file in CONF.glob("*/*.yaml"))


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_of_every_group_composes(option: str) -> None:
    config = load_config([option, *NEEDED.get(option, [])])
    group, name = option.split("=")
    if group in ("algorithm", "model"):
        assert getattr(config, group).name == name
    if group == "dataset":
        assert config.dataset.source == name
    if group == "partition":
        assert config.partition.method == name
    pattern = f".*-{config.partition.method}(_[0-9a-f]{{8}})?-{config.cluster.num_machines}-0"
    assert re.fullmatch(pattern, store_path(config).name)
    assert build_algorithm(config).config is config


def test_the_groups_are_there() -> None:
    wanted = {"algorithm=llcg", "algorithm=psgd_pa", "algorithm=single", "algorithm=server_only", "dataset=synthetic"}
    wanted |= {"model=sage", "model=gcn", "model=mlp", "model=arch", "partition=metis", "partition=random"}
    assert wanted <= set(OPTIONS)


def test_the_defaults_are_llcg_on_a_generated_graph() -> None:
    assert (DEFAULT.dataset.name, DEFAULT.algorithm.name, DEFAULT.partition.method) == ("synthetic", "llcg", "metis")
    assert (DEFAULT.model.name, DEFAULT.model.layers, DEFAULT.model.hidden) == ("sage", 2, 64)
    assert (DEFAULT.algorithm.rho, DEFAULT.algorithm.S, DEFAULT.algorithm.batchnorm_stats) == (1.1, 1, "recalibrate")
    psgd_pa = load_config(["algorithm=psgd_pa"]).algorithm
    assert (psgd_pa.rho, psgd_pa.S, psgd_pa.batchnorm_stats) == (1.0, 0, "average")


def test_overrides_reach_their_keys() -> None:
    config = load_config(["algorithm.K=16", "sampling.fanout=[10,5]", "run_dir=a/b", "algorithm.max_local_steps=7"])
    assert (config.algorithm.K, config.sampling.fanout) == (16.0, [10, 5])
    assert (config.run_dir, config.algorithm.max_local_steps) == ("a/b", 7)


def test_loading_twice_gives_the_same_and_shares_nothing() -> None:
    first = load_config(["seed=1"])
    assert load_config(["seed=1"]) == first
    assert load_config([]) == DEFAULT
    assert first.algorithm is not load_config(["seed=1"]).algorithm


def test_yaml_holds_every_key_and_reads_back() -> None:
    config = load_config(["sampling.fanout=[10,5]", "run_dir='a b'"])
    read = OmegaConf.to_container(OmegaConf.create(to_yaml(config)))
    assert read == dataclasses.asdict(config)


STRANGE = ["a b", "it's", 'a"b', "a=b,c", "[x]", "{x: y}", "1", "null", "é", "a\\b", "a\\'b", "x\\", "\\\\x", "${y}"]


@pytest.mark.parametrize("value", STRANGE)
def test_quoted_overrides_arrive_as_they_are(value: str) -> None:
    assert load_config([quoted_override("run_dir", value)]).run_dir == value


BAD_OVERRIDES: list[tuple[list[str], str]] = [
    (["algorithm=fedavg"], "algorithm"),
    (["model=transformer"], "model"),
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
    (["algorithm.K=1,2"], "algorithm.K"),
    (["algorithm.K=${nowhere}"], "algorithm.K"),
    (["algorithm.K=["], "algorithm.K"),
    (["algorithm.K"], "algorithm.K"),
    (["~algorithm.K"], "~algorithm.K: nothing can be taken away"),
    (["~algorithm"], "algorithm.name: has no value; a preset of algorithm must give it, and ~algorithm takes it away"),
    (["~seed=3"], "~seed: nothing can be taken away"),
    (["+seed=3"], "+seed: this setting is there already; leave the + out"),
    (["algorithm.K=2,4"], "algorithm.K=2,4: several values are a sweep (llcg train -m)"),
    (["algorithm.K=range(1,3)"], "algorithm.K=range(1,3): several values are a sweep (llcg train -m)"),
    (["train.optimizer_options=[1]"], "must be keys and values, such as train.optimizer_options.name=value"),
    (["algorithm.options={a:1}"], "algorithm.options: is given one by one, as algorithm.options.a=value"),
    (["algorithm=null"], "a group of presets takes the name of one, such as algorithm=llcg, and no NoneType"),
    ([""], "'': cannot be read as a setting"),
    (["dataset=files", "dataset.columns.ignore=w"], "must be a list, such as 'dataset.columns.ignore=[w]'"),
    (["dataset=files", "dataset.delimiter=;"], """in quotes: 'dataset.delimiter=";"'"""),
]


@pytest.mark.parametrize(("overrides", "key"), BAD_OVERRIDES, ids=lambda value: str(value))
def test_a_bad_override_is_one_line_that_names_the_key(overrides: list[str], key: str) -> None:
    message = refusal(overrides)
    assert key in message
    assert str(CONF) not in message  # where the settings are installed is no news to the user


@pytest.mark.parametrize(("group", "one", "other"), [("dataset", "files", "synthetic"), ("model", "gcn", "gat")])
def test_two_choices_of_a_group(group: str, one: str, other: str) -> None:
    with pytest.raises(UserError, match=f"^{group}={one} and {group}={other}: only one of them can be chosen"):
        load_config([f"{group}={one}", "seed=3", f"{group}={other}"])
    assert load_config(["model=gcn", "seed=1", "model=gcn", "seed=2"]).seed == 2
