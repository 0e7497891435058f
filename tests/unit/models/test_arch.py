"""Models spelled as strings: widths, what stands between the layers, and the bytes that the paper counts."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from llcg_dist.config import ModelConfig
from llcg_dist.core.parameters import flatten, load_flat, state_dict_bytes
from llcg_dist.models import build_model
from llcg_dist.models.arch import ArchModel
from llcg_dist.sampling import NeighborSampler, whole_graph
from tests.unit.graphs import community_graph, graph_of

# A node alone, so that a mean over nobody is met.
GRAPH = graph_of([(a, b) for a in range(40) for b in ((a * 7 + 3) % 40, (a * a + 1) % 40)], 41, 5, 3)


def build(arch: str, dropout: float = 0.0, features: int = 5, hidden: int = 8, classes: int = 3) -> ArchModel:
    torch.manual_seed(0)
    return build_model(ModelConfig(arch=arch, hidden=hidden, dropout=dropout), features, classes)


def widths(model: ArchModel) -> list[tuple[int, ...]]:
    """(in, out) of a linear map, (width,) of a BatchNorm."""
    found: list[tuple[int, ...]] = []
    for layer in model.layers:
        if isinstance(layer, nn.BatchNorm1d):
            found.append((layer.num_features,))
        elif isinstance(layer, nn.Linear):
            found.append((layer.in_features, layer.out_features))
        else:
            found.append((layer.conv.in_channels, layer.conv.out_channels))
    return found


@pytest.mark.parametrize(
    ("arch", "expected", "depth"),
    [
        ("S", [(5, 3)], 1),
        ("SBS", [(5, 8), (8,), (8, 3)], 2),
        ("SBSBS", [(5, 8), (8,), (8, 8), (8,), (8, 3)], 3),
        ("GGG", [(5, 8), (8, 8), (8, 3)], 3),
        ("BSBSBL", [(5,), (5, 8), (8,), (8, 8), (8,), (8, 3)], 2),
        ("LLL", [(5, 8), (8, 8), (8, 3)], 0),
        ("SB", [(5, 3), (3,)], 1),
    ],
)
def test_widths(arch: str, expected: list[tuple[int, ...]], depth: int) -> None:
    model = build(arch)
    assert widths(model) == expected
    assert model.depth == depth


@pytest.mark.parametrize(
    ("settings", "arch"),
    [
        (ModelConfig("sage"), "SBS"),
        (ModelConfig("sage", layers=3), "SBSBS"),
        (ModelConfig("gcn", layers=3, norm="none"), "GGG"),
        (ModelConfig("mlp", layers=3), "LBLBL"),
        (ModelConfig("gcn", layers=1), "G"),
        (ModelConfig("arch", arch="BSBSBL"), "BSBSBL"),
    ],
)
def test_names_are_short_for_strings(settings: ModelConfig, arch: str) -> None:
    assert build_model(settings, 5, 3).arch == arch


@pytest.mark.parametrize(
    ("features", "arch", "hidden", "classes", "printed"),
    [
        (500, "BSBSBL", 256, 7, 12.57),
        (8, "SSS", 256, 112, 6.20),
        (128, "GBGBG", 256, 40, 3.55),
        (602, "SBSBS", 256, 41, 14.83),
    ],
    ids=["flickr", "proteins", "arxiv", "reddit"],
)
def test_the_papers_megabytes(features: int, arch: str, hidden: int, classes: int, printed: float) -> None:
    """Table 1: eight machines' state_dicts a round, with both of SAGE's biases and no weights in a leading B."""
    model = build(arch, features=features, hidden=hidden, classes=classes)
    assert 8 * state_dict_bytes(model) / 1e6 == pytest.approx(printed, abs=0.01)


def test_a_leading_batchnorm_has_no_weights_and_the_others_do() -> None:
    model = build("BSBS")
    assert not model.layers[0].affine
    assert model.layers[2].affine
    assert "layers.0.weight" not in model.state_dict()
    assert "layers.0.running_mean" in model.state_dict()


def test_sage_has_a_bias_on_both_maps_and_adds_them() -> None:
    layer = build("S").layers[0]
    shapes = {name: tuple(tensor.shape) for name, tensor in layer.named_parameters()}
    assert shapes == {
        "conv.lin_l.weight": (3, 5),
        "conv.lin_l.bias": (3,),
        "conv.lin_r.weight": (3, 5),
        "conv.lin_r.bias": (3,),
    }
    triangle = graph_of([(0, 1), (1, 2), (2, 0)], 4, 5, 3)
    x = torch.from_numpy(triangle.features)
    own = x @ layer.conv.lin_r.weight.T + layer.conv.lin_r.bias
    mean = torch.stack([(x[1] + x[2]) / 2, (x[0] + x[2]) / 2, (x[0] + x[1]) / 2, torch.zeros(5)])
    expected = own + mean @ layer.conv.lin_l.weight.T + layer.conv.lin_l.bias
    torch.testing.assert_close(layer(x, whole_graph(triangle)), expected)


def test_gcn_has_one_bias_after_the_sum() -> None:
    layer = build("G").layers[0]
    assert sum(p.numel() for p in layer.parameters()) == 5 * 3 + 3
    nn.init.constant_(layer.conv.bias, 2.0)
    alone = graph_of([], 1, 5, 3)
    x = torch.from_numpy(alone.features)
    torch.testing.assert_close(layer(x, whole_graph(alone)), x @ layer.conv.lin.weight.T + 2.0)


def identity(arch: str, dropout: float = 0.0) -> ArchModel:
    """All maps the identity, so that only what stands between them shows."""
    model = build(arch, dropout, features=4, hidden=4, classes=4)
    for layer in model.layers:
        if isinstance(layer, nn.Linear):
            nn.init.eye_(layer.weight)
            nn.init.zeros_(layer.bias)
    return model.eval()


SIGNED = torch.tensor([[-2.0, -1.0, 1.0, 2.0]])


@pytest.mark.parametrize(
    ("arch", "shifted", "expected"),
    [
        ("L", False, [-2, -1, 1, 2]),  # no ReLU before the first layer nor after the last
        ("LL", False, [0, 0, 1, 2]),
        ("LLL", False, [0, 0, 1, 2]),
        ("BL", True, [-1, 0, 2, 3]),  # nor after a leading BatchNorm
        ("LBL", True, [0, 0, 2, 3]),  # ReLU comes after BatchNorm: −1 + 1 is kept
        ("LB", True, [-1, 0, 2, 3]),
    ],
)
def test_where_relu_stands(arch: str, shifted: bool, expected: Sequence[float]) -> None:
    model = identity(arch)
    for layer in model.layers:
        if isinstance(layer, nn.BatchNorm1d) and shifted:
            layer.eps = 0.0
            layer.running_mean.fill_(-1.0)
    assert model(SIGNED, []).tolist() == [expected]


def dropped(arch: str, dropout: float, train: bool) -> Tensor:
    torch.manual_seed(1)
    with torch.no_grad():
        return identity(arch, dropout).train(train)(torch.ones(2000, 4), [])


def test_where_dropout_stands() -> None:
    assert (dropped("L", 0.75, train=True) == 1).all()
    assert (dropped("LL", 0.75, train=False) == 1).all()
    once = dropped("LL", 0.75, train=True)
    assert set(once.unique().tolist()) == {0.0, 4.0}
    assert (once == 0).double().mean().item() == pytest.approx(0.75, abs=0.02)
    twice = dropped("LLL", 0.75, train=True)
    assert set(twice.unique().tolist()) == {0.0, 16.0}


@pytest.mark.parametrize("arch", ["S", "SS", "SBSBS", "G", "GBGBG", "SGS", "BSBSBL", "LSLG", "LLL", "LBL"])
@pytest.mark.parametrize("norm", ["symmetric", "row"])
def test_with_all_neighbours_a_batch_gets_the_whole_graphs_logits(arch: str, norm: str) -> None:
    """Eval mode: one normalisation for training, correction and evaluation."""
    torch.manual_seed(0)
    model = build_model(ModelConfig(arch=arch, hidden=8, dropout=0.5, gcn_norm=norm), 5, 3)
    load_flat(model, flatten(model) + 0.3 * torch.rand(flatten(model).numel()))
    model.eval()
    features = torch.from_numpy(GRAPH.features)
    seeds = np.array([40, 3, 17, 0])
    batch = NeighborSampler(GRAPH, [-1] * model.depth).sample(seeds, 0)
    with torch.no_grad():
        whole = model(features, [whole_graph(GRAPH)] * model.depth)
        part = model(features[batch.inputs.long()], batch.blocks)
    assert whole.shape == (41, 3)
    assert whole.isfinite().all()
    torch.testing.assert_close(part, whole[seeds], rtol=1e-5, atol=1e-5)


def test_the_norm_of_g_is_heeded() -> None:
    graph = community_graph(30)

    def logits(norm: str) -> Tensor:
        torch.manual_seed(0)
        model = build_model(ModelConfig(arch="G", gcn_norm=norm), graph.num_features, graph.num_classes)
        return model(torch.from_numpy(graph.features), [whole_graph(graph)])

    assert not torch.allclose(logits("symmetric"), logits("row"), rtol=1e-3)
