"""`--cfg` and `--info` print what Hydra prints, for the composed settings."""

import dataclasses
import logging

import pytest
from omegaconf import OmegaConf

from llcg_dist.cli.main import run
from llcg_dist.config.compose import load_config, to_yaml
from llcg_dist.config.partition import PartitionConfig


def test_cfg_job_is_the_composed_settings(capsys: pytest.CaptureFixture[str]) -> None:
    overrides = ["algorithm=psgd_pa", "algorithm.K=3"]
    assert run(["train", *overrides, "--cfg", "job"]) == 0
    shown = OmegaConf.create(capsys.readouterr().out)
    assert shown == OmegaConf.create(to_yaml(load_config(overrides)))


def test_a_package_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["partition", "-c", "job", "-p", "partition", "partition=random"]) == 0
    header, *settings = capsys.readouterr().out.splitlines()
    assert header == "# @package partition"
    assert settings[:3] == ["method: random", "seed: 0", "root: partitions"]
    assert len(settings) == len(dataclasses.fields(PartitionConfig))


@pytest.mark.parametrize("flags", [["--info", "defaults"], ["-i"], ["--info"]])
def test_info_names_the_files(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    handlers = list(logging.getLogger().handlers)
    assert run(["train", *flags, "algorithm=ggs"]) == 0
    shown = capsys.readouterr().out
    assert "algorithm/ggs" in shown
    assert ("Installed Hydra Plugins" in shown) == (flags[-1] != "defaults")
    assert logging.getLogger().handlers == handlers


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--cfg", "jobs"], "--cfg"),
        (["--cfg", "job", "--package", "nowhere"], "--package nowhere"),
        (["--cfg", "job", "algoritm=ggs"], "unknown key algoritm; did you mean algorithm?"),
        (["--info", "--wrong"], "--wrong"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("llcg: error: ")
    assert said in line


def test_a_command_that_is_nearly_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trian"]) == 2
    assert capsys.readouterr().err.endswith("did you mean train?\n")
