"""conf/experiment/figures: a sweep for every figure of the paper, whose every job composes, large and small."""

import functools
import importlib.resources
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from studies.figures import FIGURES, command

from llcg_dist.cli.sweep.sweep import drop_overridden_params
from llcg_dist.config.compose import load_config, register_schema
from llcg_dist.config.schema import Config

CONF = Path(str(importlib.resources.files("llcg_dist.conf")))
NAMES = sorted(path.stem for path in (CONF / "experiment" / "figures").glob("fig*.yaml"))


def sweep_settings(overrides: list[str]) -> Any:
    register_schema()
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", overrides=overrides, return_hydra_config=True)


@functools.cache
def axes(*overrides: str) -> dict[str, list[str]]:
    """What the experiment sweeps over by itself, where the command line does not say otherwise."""
    config = sweep_settings([override for override in overrides if override.startswith("experiment=")])
    drop_overridden_params(config, OverridesParser.create().parse_overrides(list(overrides)))
    return {key: str(values).split(",") for key, values in config.hydra.sweeper.params.items()}


@functools.cache
def jobs(*overrides: str) -> list[Config]:
    """The first job, and those that differ from it in one swept value: composing all combinations takes a minute."""
    fixed = [override for override in overrides if "," not in override.partition("=")[2] or "experiment=[" in override]
    swept = axes(*overrides)
    first = {key: values[0] for key, values in swept.items()}
    chosen = [first, *(first | {key: value} for key, values in swept.items() for value in values[1:])]
    return [load_config([*fixed, *(f"{key}={value}" for key, value in job.items())]) for job in chosen]


@pytest.mark.parametrize("name", NAMES)
def test_every_job_of_the_figure_composes(name: str) -> None:
    large = jobs(f"experiment=figures/{name}")
    assert len(large) > 1
    assert all(config.dataset.source != "synthetic" for config in large)
    first = [f"{key}={values[0]}" for key, values in axes(f"experiment=figures/{name}").items()]
    anywhere = load_config([f"experiment=figures/{name}", *first, "dataset=synthetic"])
    assert anywhere.dataset.source == "synthetic"
    assert anywhere.num_rounds == large[0].num_rounds


def test_every_figure_has_a_small_version_and_every_job_of_it_composes() -> None:
    assert sorted(FIGURES) == NAMES
    for name in NAMES:
        if not FIGURES[name].runs_of:
            for config in jobs(*command(name)):
                assert config.dataset.source == "synthetic"
                assert config.num_rounds <= 12
                assert config.cluster.backend == ("gloo" if name == "fig1_machines" else "loopback")


def test_the_figures_have_the_papers_axes_and_settings() -> None:
    found = jobs("experiment=figures/fig5_k")
    first = found[0]
    assert [job.algorithm.K for job in found] == [1, 4, 16, 64, 128]
    assert {(job.algorithm.rho, job.algorithm.S, job.dataset.name) for job in found} == {(1.1, 1, "ogbn-arxiv")}
    assert (first.num_rounds, first.train.local_lr, first.train.server_batch_size) == (100, 1e-3, 2048)
    ratios = jobs("experiment=figures/fig6_ratio_s")
    assert {(job.dataset.name, job.sampling.fanout, job.algorithm.S) for job in ratios} == {
        ("reddit", -1, 1), ("ogbn-arxiv", -1, 1), ("reddit", 0.2, 1), ("reddit", 0.05, 1), ("reddit", -1, 2),
        ("reddit", -1, 4),
    }  # fmt: skip
    curves = jobs("experiment=figures/fig4_curves")
    assert {job.dataset.name for job in curves} == {"flickr", "ogbn-proteins", "ogbn-arxiv", "reddit"}
    assert {job.algorithm.name for job in curves} == {"psgd_pa", "ggs", "llcg"}
    mlp = jobs("experiment=figures/fig10_mlp")
    assert [(job.model.arch, job.dataset.name, job.train.local_lr) for job in mlp] == [
        ("GGG", "yelp", 1e-2),
        ("LLL", "yelp", 1e-2),
    ]
    products = jobs("experiment=figures/fig10_products")
    assert {(job.model.hidden, job.num_rounds, job.cluster.num_machines) for job in products} == {(128, 50, 8)}


def test_the_command_line_has_the_last_word_on_what_is_swept() -> None:
    assert axes("experiment=figures/fig6_ratio_s", "algorithm.S=1").keys() == {"experiment/paper", "sampling.fanout"}
    assert axes("experiment=figures/fig6_ratio_s", "experiment/paper=arxiv_gcn", "algorithm.S=1,2").keys() == {
        "sampling.fanout"
    }
