"""The methods' colours can be told apart, with each form of colour blindness too."""

from itertools import combinations

import numpy as np
import pytest

from llcg_dist.report.style import COLOURS, DARK, dark_shades, line_style, shade_of

# Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
SIGHT = {
    "full": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colour: str, sight: str) -> np.ndarray:
    """CIE L*a*b*, in which a distance of about 2 is just seen."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(SIGHT[sight]) @ linear, 0, 1)
    xyz = XYZ @ seen / XYZ.sum(axis=1)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("colours", [COLOURS, DARK], ids=["light", "dark"])
def test_methods_are_told_apart(colours: dict[str, str], sight: str) -> None:
    for one, other in combinations(colours, 2):
        assert np.linalg.norm(lab(colours[one], sight) - lab(colours[other], sight)) > 14, (one, other)


def test_every_method_has_its_colour() -> None:
    methods = {"single", "psgd_pa", "llcg", "llcg_paper", "llcg_plus", "ggs", "full_sync", "subgraph_approx"}
    assert set(COLOURS) == set(DARK) == methods | {"server_only"}


def luminance(colour: str) -> float:
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return float(XYZ[1] @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4))


def test_the_shades_of_a_method_are_seen_on_a_dark_page() -> None:
    """Their contrast with the card behind them; the shades of a light page have as little as 1.2 there."""
    card = luminance("#1b1e23") + 0.05
    for method in [*COLOURS, "of_ones_own"]:
        shades = dark_shades([method], 5)
        for count in range(2, 6):
            drawn = [line_style(method, shade_of(index, count))["color"] for index in range(count)]
            seen = [shades[colour] for colour in drawn]
            assert len(set(seen)) == count
            assert min(luminance(colour) + 0.05 for colour in seen) / card > 2.5, (method, seen)


def test_every_shade_is_a_colour() -> None:
    """Rounding may lead out of [0, 1], with some versions of colorsys."""
    for most in range(1, 30):
        assert all(len(shade) == 7 for shade in dark_shades([*COLOURS, "my method"], most).values())
