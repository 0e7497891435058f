"""A job that tests interrupt, and the comparison with one that was not."""

import re
from pathlib import Path

from tests.helpers.run_files import model_bytes, rows_without_times

ROUNDS = 80
JOB = ["experiment=tiny", f"num_rounds={ROUNDS}", "algorithm.K=2", "cluster.max_restarts=3"]


def resumed_after(run_dir: Path) -> list[int]:
    """The round that each start of the run went on from; 0 is a start from nothing."""
    log = (run_dir / "logs" / "server.log").read_text()
    return [int(found) for found in re.findall(r"going on after round (\d+)", log)]


def assert_undisturbed(run_dir: Path, undisturbed: Path) -> None:
    """Both models and all records are those of the run in the folder `undisturbed`, to the last bit."""
    assert model_bytes(run_dir) == model_bytes(undisturbed)
    assert (run_dir / "best.pt").read_bytes() == (undisturbed / "best.pt").read_bytes()
    assert rows_without_times(run_dir) == rows_without_times(undisturbed)
