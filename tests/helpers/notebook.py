"""examples/notebook.ipynb: its cells, and what a run of all of them must have shown."""

import json
from typing import Any

from tests.helpers.jobs import REPOSITORY

NOTEBOOK = REPOSITORY / "examples" / "notebook.ipynb"


def code_cells() -> list[dict[str, Any]]:
    content = json.loads(NOTEBOOK.read_text())
    return [cell for cell in content["cells"] if cell["cell_type"] == "code"]
