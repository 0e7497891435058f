"""The folder of a job of a sweep."""

from llcg_dist.cli.sweep.launcher import job_name


def test_a_job_is_named_after_its_values_within_one_folder() -> None:
    assert job_name(["algorithm.K=4", "seed=1"]) == job_name(["seed=1", "algorithm.K=4"]) == "algorithm.K=4,seed=1"
    assert job_name([]) == "job"
    strange = {job_name([f"dataset.root={value}"]) for value in ("../a", "/a", "..-a", "-a", "a/b", "x" * 500)}
    assert len(strange) == 6
    assert all("/" not in each and len(each) < 200 for each in strange)
