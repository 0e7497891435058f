"""A disk that is full under run_dir or partition.root: one line, and the exit code of a failure."""

from pathlib import Path

import pytest

from tests.helpers.disks import small_disk
from tests.helpers.jobs import llcg
from tests.helpers.training import cut

ADVICE = "; make room, and start the same command again"


@pytest.mark.parametrize("kilobytes", [8, pytest.param(64, marks=pytest.mark.full)])
def test_training(tmp_path: Path, kilobytes: int) -> None:
    """64 kB are full after some rounds, 8 before the first."""
    parts = f"partition.root={tmp_path}/parts"
    cut("experiment=tiny", parts)
    with small_disk(tmp_path / "disk", kilobytes) as disk:
        outcome = llcg("train", "experiment=tiny", parts, f"run_dir={disk}/run")
        error = outcome.only_error()
        assert error.startswith(f"llcg: error: rank 0 (server): {disk}/run/")
        assert error.endswith(f": No space left on device{ADVICE}")
        assert outcome.code == 1


def test_partitioning(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64) as disk:
        outcome = llcg("partition", "experiment=tiny", f"partition.root={disk}/parts")
        error = outcome.only_error()
        assert error.startswith(f"llcg: error: {disk}/parts/")
        assert error.endswith(ADVICE)
        assert outcome.code == 1
        assert list(disk.glob("parts/*")) == []
