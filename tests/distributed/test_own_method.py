"""A method of the user's own over real processes: the bits of loopback."""

from pathlib import Path

from tests.helpers.jobs import torchrun
from tests.helpers.run_files import model_bytes

TINY = ["experiment=tiny", "algorithm=psgd_pa", "algorithm.name=median", "cluster.num_machines=3", "logger=none"]


def test_processes_have_the_bits_of_loopback(tmp_path: Path) -> None:
    settings = [*TINY, f"partition.root={tmp_path}/parts"]
    for ranks, backend in ((4, "gloo"), (1, "loopback")):
        overrides = [*settings, f"cluster.backend={backend}", f"run_dir={tmp_path}/{backend}"]
        outcome = torchrun(ranks, "-m", "tests.helpers.ranks.own_method", *overrides, cwd=Path(__file__).parents[2])
        assert outcome.code == 0, outcome.err
    assert model_bytes(tmp_path / "gloo") == model_bytes(tmp_path / "loopback")
