"""`llcg train --help` tells every key, with the value that it has under the overrides."""

import dataclasses

import pytest

from llcg_dist.cli.describe import Key, describe
from llcg_dist.cli.main import run
from llcg_dist.config.compare import flat_items
from llcg_dist.config.compose import load_config
from llcg_dist.config.datasets import DATASETS
from tests.helpers.settings import DEFAULT


def described(*overrides: str) -> dict[str, dict[str, Key]]:
    """{title: {dotted key: its entry}}."""
    return {part.title: {key.name: key for key in part.keys} for part in describe(load_config(overrides))}


def test_help_covers_every_key_with_its_type_and_value() -> None:
    """But for the names that a group's choice sets; and the keys of every other source of graphs besides."""
    keys = {name: key for part in described().values() for name, key in part.items()}
    chosen_by_group = {"dataset.source", "model.name", "algorithm.name", "partition.method"}
    of_sources = {key for source in DATASETS.values() for key in flat_items(source(), "dataset.")}
    options = {"model.options", "algorithm.options", "dataset.options", "train.optimizer_options"}  # any keys below
    assert set(keys) - options == (set(flat_items(DEFAULT)) | of_sources) - chosen_by_group
    assert options <= set(keys)
    assert dataclasses.astuple(keys["algorithm.K"])[:3] == ("algorithm.K", "float", "8.0")
    assert (keys["algorithm.max_local_steps"].type_name, keys["algorithm.max_local_steps"].value) == (
        "int | None",
        "null",
    )
    assert "correction" in keys["algorithm.S"].text.lower()
    assert keys["dataset.seed"].text  # inherited from the schema of all datasets
    assert keys["run_dir"].text


def test_values_are_those_that_the_overrides_compose() -> None:
    of_llcg, of_psgd_pa = described()[""], described("algorithm=psgd_pa", "sampling.fanout=[10,5]")[""]
    assert [of_llcg[f"algorithm.{name}"].value for name in ("S", "rho")] == ["1", "1.1"]
    assert [of_psgd_pa[f"algorithm.{name}"].value for name in ("S", "rho")] == ["0", "1.0"]
    assert of_psgd_pa["sampling.fanout"].value == "[10,5]"


def test_dataset_keys_stand_under_their_source() -> None:
    parts = described("dataset=planetoid", "dataset.name=PubMed", "dataset.split=random")
    assert parts["with any dataset"]["dataset.name"].value == "PubMed"
    assert parts["with dataset=planetoid, which is chosen"]["dataset.split"].value == "random"
    assert parts["with dataset=heterophilous"]["dataset.split"].type_name == "int"
    assert "dataset.edges" in parts["with dataset=files"]
    assert parts["with dataset=amazon|coauthor"]["dataset.root"].value == "data/amazon | data/coauthor"
    assert "dataset.nodes" not in parts["with dataset=files"]


def test_the_command_takes_overrides_before_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "algorithm=psgd_pa", "algorithm.K=3", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "\n  algorithm.K = 3.0 (float)\n" in shown
    assert "values with algorithm=psgd_pa algorithm.K=3:" in shown
    assert run(["train", "-m", "algorithm=psgd_pa", "algorithm.K=3,4", "--help"]) == 0
    assert "\n  algorithm.K = 8.0 (float)\n" in capsys.readouterr().out
    assert run(["train", "algorithm=lcg", "--help"]) == 2
    assert "did you mean llcg?" in capsys.readouterr().err
