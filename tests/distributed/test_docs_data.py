"""The examples of docs/data.md, pasted into a shell as a reader would."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd

DOCS = Path(__file__).parents[2] / "docs" / "data.md"


def example(name: str) -> str:
    _, _, rest = DOCS.read_text().partition(f"<!-- example: {name} -->\n```bash\n")
    script, end, _ = rest.partition("\n```\n")
    assert end, f"docs/data.md has no example {name!r}"
    return script


def test_the_examples_run_as_they_are_printed(tmp_path: Path) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    script = example("your own graph") + "\n" + example("a new graph")
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ended.returncode == 0, ended.stderr
    own = pd.read_csv(tmp_path / "runs" / "clubs" / "predictions.csv").set_index("node")
    assert own.index.tolist() == ["ann", "bob", "cho", "dan", "eve", "fay", "gus", "hal"]
    assert own.loc["dan", "class"] in ("chess", "rowing")
    new = pd.read_parquet(tmp_path / "new.parquet").set_index("node")
    assert new["class"].to_dict() == {"ivy": "chess", "jon": "chess", "kim": "rowing", "lee": "rowing"}
