"""The examples of docs/guides/graph.md, pasted into a shell as a reader would."""

from pathlib import Path

import pandas as pd
import pytest

from tests.helpers.jobs import REPOSITORY, finish, start

DOCS = REPOSITORY / "docs" / "guides" / "graph.md"


def example(name: str) -> str:
    _, _, rest = DOCS.read_text().partition(f"<!-- example: {name} -->\n```bash\n")
    script, end, _ = rest.partition("\n```\n")
    assert end, f"docs/guides/graph.md has no example {name!r}"
    return script


@pytest.mark.full
def test_the_examples_run_as_they_are_printed(tmp_path: Path) -> None:
    script = example("your own graph") + "\n" + example("a new graph")
    outcome = finish(start(["bash", "-euo", "pipefail", "-c", script], tmp_path), limit=240)
    assert outcome.code == 0, outcome.err
    own = pd.read_csv(tmp_path / "runs" / "clubs" / "predictions.csv").set_index("node")
    assert own.index.tolist() == ["ann", "bob", "cho", "dan", "eve", "fay", "gus", "hal"]
    assert own.loc["dan", "class"] in ("chess", "rowing")
    assert own["probability"].between(0.5, 1).all()
    new = pd.read_parquet(tmp_path / "new.parquet").set_index("node")
    assert new["class"].to_dict() == {"ivy": "chess", "jon": "chess", "kim": "rowing", "lee": "rowing"}
