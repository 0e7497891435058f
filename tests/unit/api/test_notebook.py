"""The cells of examples/notebook.ipynb in their order, without Jupyter."""

import sys
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pytest

from tests.helpers.notebook import NOTEBOOK, code_cells


def test_it_is_committed_without_outputs() -> None:
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code_cells())


def test_its_cells_run_and_show_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(NOTEBOOK.parent), *sys.path])
    matplotlib.use("agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in code_cells():
        exec("".join(cell["source"]), names)
    drawn = {line.get_label(): line.get_ydata().tolist() for line in plt.gca().get_lines()}  # type: ignore[union-attr]
    plt.close("all")
    runs = names["runs"]
    assert drawn == {method: run.history["val_score"].tolist() for method, run in runs.items()}
    assert {len(scores) for scores in drawn.values()} == {10}
    assert names["test_accuracy"] == pytest.approx(runs["llcg"].summary["test_score_at_best_val"], abs=1e-6)
    assert names["test_accuracy"] > 0.5  # by chance: a quarter
    assert type(names["model"]) is names["Net"]
