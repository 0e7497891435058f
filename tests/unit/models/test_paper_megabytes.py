"""The MB column of the paper's Table 1: P machines' state_dicts, from the models that the experiments define."""

import functools

import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.config.model import ModelConfig
from llcg_dist.models import build_model
from llcg_dist.training.flat_vector import flatten, state_dict_bytes

SIZES = {"flickr": (500, 7), "proteins": (8, 112), "arxiv": (128, 40), "reddit": (602, 41)}
"""Features and classes."""

PRINTED = {
    "flickr_sage": 12.57,
    "flickr_gat": 4.24,
    "flickr_appnp": 8.40,
    "proteins_sage": 6.20,
    "proteins_gat": 3.14,
    "proteins_appnp": 7.31,
    "arxiv_gcn": 3.55,
    "arxiv_gat": 3.59,
    "arxiv_appnp": 7.71,
    "reddit_sage": 14.83,
    "reddit_gat": 7.48,
    "reddit_appnp": 11.63,
}


@functools.cache
def model_of(cell: str) -> ModelConfig:
    """The dataset is not needed to define the model, only its sizes."""
    return load_config([f"experiment=paper/{cell}"]).model


@pytest.mark.parametrize("cell", PRINTED)
def test_the_papers_megabytes_follow_from_the_model(cell: str) -> None:
    model = build_model(model_of(cell), *SIZES[cell.split("_")[0]])
    megabytes = 8 * (state_dict_bytes(model) + model.unused_bytes) / 1e6
    assert megabytes == pytest.approx(PRINTED[cell], abs=0.01)


def test_the_unused_layers_of_appnp_are_counted_but_neither_built_nor_sent() -> None:
    model = build_model(model_of("flickr_appnp"), *SIZES["flickr"])
    assert 8 * state_dict_bytes(model) / 1e6 == pytest.approx(4.19, abs=0.01)
    # running mean and variance of 500 features, L(500, 256), L(256, 7)
    assert flatten(model).numel() == 2 * 500 + (500 * 256 + 256) + (256 * 7 + 7)


def test_only_appnp_has_unused_layers() -> None:
    unused = {cell: build_model(model_of(cell), *SIZES[cell.split("_")[0]]).unused_bytes for cell in PRINTED}
    assert {cell for cell, size in unused.items() if size} == {cell for cell in PRINTED if cell.endswith("appnp")}
