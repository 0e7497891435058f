"""Facts that follow from the settings, for models spelled out by hand."""

import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.config.facts import (
    arch_string,
    corrects,
    has_batchnorm,
    has_batchnorm_after_message_passing,
    message_passing_layers,
    scored_statistics,
)
from llcg_dist.config.schema import ModelConfig


@pytest.mark.parametrize(
    ("model", "arch"),
    [
        (ModelConfig("sage"), "SBS"),
        (ModelConfig("gcn", layers=3), "GBGBG"),
        (ModelConfig("sage", input_norm=True), "BSBS"),
        (ModelConfig("gcn", layers=3, norm="none"), "GGG"),
        (ModelConfig("mlp", layers=1, input_norm=True), "BL"),
        (ModelConfig("arch", arch="BSBSBL"), "BSBSBL"),
        (ModelConfig("sage", layers=5, arch="GL"), "GL"),
    ],
)
def test_arch_string(model: ModelConfig, arch: str) -> None:
    assert arch_string(model) == arch


@pytest.mark.parametrize(
    ("model", "depth", "batchnorm", "after_message_passing"),
    [
        (ModelConfig("sage", layers=3), 3, True, False),
        (ModelConfig("sage", layers=1), 1, False, False),
        (ModelConfig("sage", layers=1, input_norm=True), 1, True, False),
        (ModelConfig("mlp"), 0, True, True),
        (ModelConfig("mlp", norm="none"), 0, False, False),
        (ModelConfig("arch", arch="BSBSBL"), 2, True, True),
        (ModelConfig("arch", arch="BSBSL"), 2, True, False),
        (ModelConfig("arch", arch="GLS"), 2, False, False),
        (ModelConfig("gat", layers=1), 1, False, False),
        (ModelConfig("gat", layers=1, input_norm=True), 1, True, False),
        (ModelConfig("gat", layers=2), 2, True, False),
        (ModelConfig("appnp", layers=4), 4, True, False),
        (ModelConfig("appnp", layers=4, norm="none"), 4, False, False),
        (ModelConfig("resgcn", layers=2), 2, True, True),
        (ModelConfig("resgcn", layers=2, norm="none", input_norm=True), 2, True, False),
        (ModelConfig("skip_sage", layers=2), 2, True, True),
    ],
)
def test_depth_and_where_batchnorm_stands(
    model: ModelConfig, depth: int, batchnorm: bool, after_message_passing: bool
) -> None:
    assert message_passing_layers(model) == depth
    assert has_batchnorm(model) is batchnorm
    assert has_batchnorm_after_message_passing(model) is after_message_passing


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [([], True), (["algorithm.S=0"], False), (["algorithm.S=auto"], True), (["algorithm=psgd_pa"], False)],
)
def test_whether_the_server_corrects(overrides: list[str], expected: bool) -> None:
    assert corrects(load_config(overrides)) is expected


@pytest.mark.parametrize(
    ("overrides", "kinds"),
    [
        (["algorithm=llcg"], ("recalibrate",)),
        (["algorithm=psgd_pa"], ("average",)),
        (["algorithm=llcg", "evaluate.both_statistics=true"], ("average", "recalibrate")),
        (["algorithm=llcg_plus"], ("average", "recalibrate")),
        (["algorithm=llcg_plus", "model.norm=none"], ("recalibrate",)),
    ],
)
def test_statistics_that_are_scored(overrides: list[str], kinds: tuple[str, ...]) -> None:
    assert scored_statistics(load_config(overrides)) == kinds
