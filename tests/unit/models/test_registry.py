"""What is known of a model before it is built."""

import pytest

from llcg_dist.config.model import ModelConfig, Norm
from llcg_dist.models.registry import structure


@pytest.mark.parametrize(
    ("model", "arch"),
    [
        (ModelConfig("sage"), "SBS"),
        (ModelConfig("gcn", layers=3), "GBGBG"),
        (ModelConfig("sage", input_norm=True), "BSBS"),
        (ModelConfig("gcn", layers=3, norm=Norm.none), "GGG"),
        (ModelConfig("mlp", layers=1, input_norm=True), "BL"),
        (ModelConfig("arch", arch="BSBSBL"), "BSBSBL"),
        (ModelConfig("sage", layers=5, arch="GL"), "GL"),
        (ModelConfig("gat", layers=2, input_norm=True), "BABA"),
        (ModelConfig("appnp", layers=3), "BLPPPL"),
        (ModelConfig("resgcn", layers=2), "LBGBGBL"),
        (ModelConfig("skip_sage", layers=2), "SBSBLBL"),
    ],
)
def test_letters(model: ModelConfig, arch: str) -> None:
    assert structure(model).letters == arch


@pytest.mark.parametrize(
    ("model", "depth", "batchnorm", "after_message_passing"),
    [
        (ModelConfig("sage", layers=3), 3, True, False),
        (ModelConfig("sage", layers=1), 1, False, False),
        (ModelConfig("sage", layers=1, input_norm=True), 1, True, False),
        (ModelConfig("mlp"), 0, True, True),
        (ModelConfig("mlp", norm=Norm.none), 0, False, False),
        (ModelConfig("arch", arch="BSBSBL"), 2, True, True),
        (ModelConfig("arch", arch="BSBSL"), 2, True, False),
        (ModelConfig("arch", arch="GLS"), 2, False, False),
        (ModelConfig("gat", layers=1), 1, False, False),
        (ModelConfig("gat", layers=1, input_norm=True), 1, True, False),
        (ModelConfig("gat", layers=2), 2, True, False),
        (ModelConfig("appnp", layers=4), 4, True, False),
        (ModelConfig("appnp", layers=4, norm=Norm.none), 4, False, False),
        (ModelConfig("resgcn", layers=2), 2, True, True),
        (ModelConfig("resgcn", layers=2, norm=Norm.none, input_norm=True), 2, True, False),
        (ModelConfig("skip_sage", layers=2), 2, True, True),
    ],
)
def test_depth_and_where_batchnorm_stands(
    model: ModelConfig, depth: int, batchnorm: bool, after_message_passing: bool
) -> None:
    assert structure(model).depth == depth
    assert structure(model).has_batchnorm is batchnorm
    assert structure(model).has_batchnorm_after_message_passing is after_message_passing
