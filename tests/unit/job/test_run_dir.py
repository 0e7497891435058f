"""The folder of a run that names none."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.errors import UserError
from llcg_dist.job.run_dir import claim_run_dir


def test_jobs_of_the_same_second_have_folders_of_their_own(tmp_path: Path) -> None:
    config, chosen = load_config(["experiment=tiny"]), tmp_path / "runs" / "now"
    with ThreadPoolExecutor(8) as pool:
        claimed = list(pool.map(lambda _: claim_run_dir(config, chosen), range(24)))
    assert len(set(claimed)) == 24
    assert all(folder.is_dir() for folder in claimed)
    assert {chosen, tmp_path / "runs" / "now_2"} <= set(claimed)


def test_a_folder_that_is_named_is_the_one(tmp_path: Path) -> None:
    config = load_config(["experiment=tiny", f"run_dir={tmp_path}"])
    assert claim_run_dir(config, tmp_path) == tmp_path


def test_a_place_that_takes_no_folder(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(UserError, match=f"run_dir={tmp_path}/runs: cannot make this folder"):
        claim_run_dir(load_config(["experiment=tiny"]), tmp_path / "runs" / "now")
