"""Models spelled as strings: widths, and what stands between the layers."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

from llcg_dist.config.model import ModelConfig, Norm
from llcg_dist.models.layers import Gcn, Sage
from llcg_dist.models.stages import GraphModel
from tests.helpers.models import batchnorms, running_statistics, staged_model

LETTERS = {nn.BatchNorm1d: "B", nn.Linear: "L", Sage: "S", Gcn: "G"}


def build(arch: str, dropout: float = 0.0, features: int = 5, hidden: int = 8, classes: int = 3) -> GraphModel:
    torch.manual_seed(0)
    return staged_model(ModelConfig(arch=arch, hidden=hidden, dropout=dropout), features, classes)


def in_order(model: GraphModel) -> list[nn.Module]:
    """BatchNorms and layers as they are applied."""
    return [module for stage in model.each_stage() for module in (stage.norm, stage.layer) if module is not None]


def spelled(model: GraphModel) -> str:
    return "".join(LETTERS[type(module)] for module in in_order(model))


def widths(model: GraphModel) -> list[tuple[int, ...]]:
    """(in, out) of a linear map, (width,) of a BatchNorm."""
    found: list[tuple[int, ...]] = []
    for module in in_order(model):
        if isinstance(module, nn.BatchNorm1d):
            found.append((module.num_features,))
        elif isinstance(module, nn.Linear):
            found.append((module.in_features, module.out_features))
        else:
            assert isinstance(module, Sage | Gcn)
            found.append((module.conv.in_channels, module.conv.out_channels))
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
        ("BBGBBL", [(5,), (5,), (5, 8), (8,), (8,), (8, 3)], 1),
    ],
)
def test_widths(arch: str, expected: list[tuple[int, ...]], depth: int) -> None:
    model = build(arch)
    assert spelled(model) == arch
    assert widths(model) == expected
    assert model.depth == depth


@pytest.mark.parametrize(
    ("settings", "arch"),
    [
        (ModelConfig("sage"), "SBS"),
        (ModelConfig("sage", layers=3), "SBSBS"),
        (ModelConfig("sage", input_norm=True), "BSBS"),
        (ModelConfig("gcn", layers=3, norm=Norm.none), "GGG"),
        (ModelConfig("mlp", layers=3), "LBLBL"),
        (ModelConfig("gcn", layers=1), "G"),
        (ModelConfig("arch", arch="BSBSBL"), "BSBSBL"),
    ],
)
def test_names_are_short_for_strings(settings: ModelConfig, arch: str) -> None:
    assert spelled(staged_model(settings, 5, 3)) == arch


def test_a_leading_batchnorm_has_no_weights_and_the_others_do() -> None:
    first, second = batchnorms(build("BSBS"))
    assert not first.affine
    assert second.affine
    assert "weight" not in first.state_dict()
    assert "running_mean" in first.state_dict()


def identity(arch: str, dropout: float = 0.0) -> GraphModel:
    """All maps the identity, so that only what stands between them shows."""
    model = build(arch, dropout, features=4, hidden=4, classes=4)
    for module in in_order(model):
        if isinstance(module, nn.Linear):
            nn.init.eye_(module.weight)
            nn.init.zeros_(module.bias)
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
        ("LBBL", True, [0, 1, 3, 4]),  # nor between two of them
    ],
)
def test_where_relu_stands(arch: str, shifted: bool, expected: Sequence[float]) -> None:
    model = identity(arch)
    assert bool(batchnorms(model)) == shifted
    for norm in batchnorms(model):
        norm.eps = 0.0
        running_statistics(norm)[0].fill_(-1.0)
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
