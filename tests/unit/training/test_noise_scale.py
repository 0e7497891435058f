"""The gradient noise scale: the estimate from batches, against noise that was put in."""

import math

import numpy as np
import pytest
import torch

from llcg_dist.config.compose import load_config
from llcg_dist.data.datasets import load_dataset
from llcg_dist.data.views import GraphView
from llcg_dist.models import build_model
from llcg_dist.models.samplers import sampler_for
from llcg_dist.training.noise_scale import measure_noise_scale, noise_scale


def test_by_hand() -> None:
    """Two batches of 4 with the gradients 3 and 1: ‖mean‖² is 4, the mean of ‖g‖² 5, so tr(Σ)/B is 2 and ‖G‖² is 3."""
    assert noise_scale(4, [9.0, 1.0], 4.0) == pytest.approx(8 / 3)
    assert noise_scale(4, [4.0, 4.0], 4.0) == 0
    assert noise_scale(4, [4.0, 4.0], 0.0) == math.inf
    with pytest.raises(ValueError, match="two batches"):
        noise_scale(4, [1.0], 1.0)


@pytest.mark.parametrize("batch", [1, 10])
def test_known_noise(batch: int) -> None:
    """Gradients of examples: a mean of length 1 and noise of variance 1/50 in each of 1,000 dimensions, so 20."""
    rng = np.random.default_rng(0)
    gradients = np.zeros(1000) + rng.normal(0, math.sqrt(0.02 / batch), (400, 1000))
    gradients[:, 0] += 1
    squares = (gradients**2).sum(axis=1).tolist()
    assert noise_scale(batch, squares, float((gradients.mean(axis=0) ** 2).sum())) == pytest.approx(20, rel=0.1)


def test_of_a_model_on_a_graph() -> None:
    """The same number from batches of other sizes."""
    graph = load_dataset(load_config(["experiment=tiny", "dataset.nodes=2000"]).dataset)
    torch.manual_seed(0)
    model = build_model(
        load_config(["experiment=tiny", "model.norm=none"]).model, graph.num_features, graph.num_classes
    )
    view = GraphView(graph)
    sampler = sampler_for(model, view.topology, 10)

    def measured(size: int, batches: int) -> float:
        return measure_noise_scale(model, view, sampler, size, batches, np.random.default_rng(1))

    small, large = measured(8, 200), measured(64, 50)
    assert small == pytest.approx(large, rel=0.3)
    assert measured(10**6, 20) == pytest.approx(large, rel=0.5)  # batches are a quarter of the training nodes at most
