"""bench.scale: figures survive a kill, files are the same graph whenever they are written, exponents."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from bench.kept import Kept
from bench.scale_files import CLASSES, FEATURES, write_files
from bench.scale_stages import NODES, Sized
from bench.scale_tables import by_size, growth


def test_what_was_measured_is_not_measured_again_by_the_next_process(tmp_path: Path) -> None:
    Kept(tmp_path / "here" / "figures.json").measured("cut", lambda: {"seconds": 3.0})

    def killed() -> dict[str, float]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Kept(tmp_path / "here" / "figures.json").measured("train", killed)
    kept = Kept(tmp_path / "here" / "figures.json")
    assert kept.measured("cut", killed) == {"seconds": 3.0}
    assert "train" not in kept
    kept.forget()
    assert "cut" not in Kept(tmp_path / "here" / "figures.json")


def test_files_of_a_graph(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write_files(tmp_path / folder, 5_000, 60_000)
    read = {name: np.load(tmp_path / "a" / f"{name}.npy") for name in ("edges", "features", "labels")}
    for name, array in read.items():
        assert (array == np.load(tmp_path / "b" / f"{name}.npy")).all()
    labels, (src, dst) = read["labels"], read["edges"]
    assert read["features"].shape == (5_000, FEATURES)
    assert np.bincount(labels).tolist() == [107] * 18 + [106] * (CLASSES - 18)
    assert (labels[src] == labels[dst]).mean() == pytest.approx(0.8, abs=0.01)
    assert len(np.unique(dst)) > 4_990
    before = (tmp_path / "a" / "edges.npy").stat().st_mtime_ns
    write_files(tmp_path / "a", 5_000, 60_000)
    assert (tmp_path / "a" / "edges.npy").stat().st_mtime_ns == before


def test_sizes_are_factors(tmp_path: Path) -> None:
    assert Sized(Fraction("1/16"), tmp_path).nodes == NODES // 16
    assert Sized(Fraction("10"), tmp_path).nodes == 10 * NODES
    names = by_size({"sizes": {size: {} for size in ("10", "1/4", "1", "1/16", "4")}})
    assert list(names) == ["1/16", "1/4", "1", "4", "10"]


def test_growth_is_that_between_the_two_largest_sizes() -> None:
    assert growth([1, 10, 1_000], [7.0, 1.0, 10_000.0]) == pytest.approx(2.0)
