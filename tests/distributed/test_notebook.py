"""examples/notebook.ipynb in Jupyter's own kernel, as a reader runs it."""

import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.helpers.notebook import NOTEBOOK


@pytest.mark.full
def test_it_runs_and_shows_curves_a_table_and_a_score(tmp_path: Path) -> None:
    for name in ("notebook.ipynb", "own_dataset.py"):
        shutil.copy(NOTEBOOK.with_name(name), tmp_path)
    notebook = nbformat.read(tmp_path / "notebook.ipynb", as_version=4)
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert not [output for cell in outputs for output in cell if output.output_type == "error"]
    shown = [output.data for cell in outputs for output in cell if "data" in output]
    assert any("image/png" in data for data in shown), "no curves"
    assert any("true" in data.get("text/html", "") for data in shown), "no table of the classes"
    said = shown[-1]["text/plain"]
    assert said.startswith("'Net: test accuracy 0.")
    score, recorded = (text.strip("'").rpartition(" ")[2] for text in said.split(", "))
    assert score == recorded
    assert float(score) > 0.5  # by chance: a quarter
