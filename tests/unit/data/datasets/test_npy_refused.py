"""The user's own graph in .npy files: every mistake is named with its place."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.own_graph import EDGES, LABELS, NUMBERS, SPLIT, refused, renamed, write

BAD_NPY: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "nan": ("features", lambda p: np.save(p, spoiled(np.nan)), "row 2, column 1 is nan; it must be a finite number"),
    "infinite": ("features", lambda p: np.save(p, spoiled(np.inf)), "row 2, column 1 is inf; it must be a finite"),
    "flat": ("features", lambda p: np.save(p, np.zeros(6)), "must have shape [nodes, features], not [6]"),
    "words": ("features", lambda p: np.save(p, np.full((6, 2), "a")), "must hold an array of numbers, not <U1"),
    "fewer rows": ("features", lambda p: np.save(p, np.zeros((5, 2))), ""),
    "pickled": (
        "features",
        lambda p: np.save(p, np.full((6, 2), None), allow_pickle=True),
        "not a readable .npy file: it holds pickled Python objects, which are never loaded",
    ),
    "a pickle": (
        "features",
        lambda p: p.write_bytes(pickle.dumps({"x": 1})),
        "not a readable .npy file: it holds pickled Python objects, which are never loaded",
    ),
    "truncated": ("features", lambda p: truncated(p, np.zeros((6, 2))), "not a readable .npy file: it is truncated"),
    "empty": ("features", lambda p: p.write_bytes(b""), "not a readable .npy file: it is truncated"),
    "cut header": ("features", lambda p: truncated(p, np.zeros((6, 2)), 20), "not a readable .npy file"),
    "an archive": ("features", lambda p: archive(p), "must hold an array of numbers, not an .npz archive"),
    "wrong shape": (
        "edges",
        lambda p: np.save(p, np.zeros((5, 2), int)),
        "must hold whole numbers in the shape",
    ),
    "floats": ("edges", lambda p: np.save(p, np.zeros((2, 5))), "must hold whole numbers in the shape"),
    "beyond": ("edges", lambda p: np.save(p, [[0, 1], [1, 6]]), "column 1: node '6' is not a node of"),
    "below": ("edges", lambda p: np.save(p, [[0, -1], [1, 2]]), "column 1: node '-1' is not a node of"),
}


def spoiled(value: float) -> Any:
    features = np.ones((6, 2), np.float32)
    features[2, 1] = value
    return features


def truncated(path: Path, array: Any, keep: int = -8) -> None:
    np.save(path, array)
    path.write_bytes(path.read_bytes()[:keep])


def archive(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, np.zeros((6, 2)))


@pytest.mark.parametrize("kind", BAD_NPY)
def test_bad_npy_is_named_with_its_row_and_column(kind: str, tmp_path: Path) -> None:
    name, spoil, rule = BAD_NPY[kind]
    write(tmp_path, labels=renamed(LABELS, NUMBERS), split=renamed(SPLIT, NUMBERS), edges=renamed(EDGES, NUMBERS))
    np.save(tmp_path / "features.npy", np.ones((6, 2)))
    np.save(tmp_path / "edges.npy", [[0], [1]])
    spoil(tmp_path / f"{name}.npy")
    message = refused(tmp_path, edges=tmp_path / "edges.npy", features=tmp_path / "features.npy")
    if kind == "fewer rows":
        rule = f"line 2: node '5' is not a node of {tmp_path}/features.npy"
        assert message == f"{tmp_path}/labels.csv: {rule}"
    else:
        assert message.startswith(f"{tmp_path}/{name}.npy: {rule}")
