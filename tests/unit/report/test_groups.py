"""Runs are grouped by every setting that differs, but for the seed and for places."""

import json
import os
from pathlib import Path

from llcg_dist.report import write_report
from llcg_dist.report.groups import Study, studies
from llcg_dist.report.lines import styles
from llcg_dist.report.runs import find_runs
from llcg_dist.report.tables import results_table, runs_table
from tests.helpers.run_records import write_run


def labels(study: Study) -> dict[str, list[int]]:
    return {group.label: [run.summary["seed"] for run in group.runs] for group in study.groups}


def test_seeds_and_places_are_one_group(tmp_path: Path) -> None:
    for seed in (2, 0, 1):
        places = {"partition.root": f"elsewhere{seed}", "dataset.root": f"there{seed}", "checkpoint.keep": seed + 1}
        write_run(tmp_path / str(seed), [0.5], seed=seed, settings=places)
    (study,) = studies(find_runs([tmp_path]))
    assert labels(study) == {"llcg": [0, 1, 2]}
    assert study.keys == {}


def test_labels_name_the_settings_that_differ(tmp_path: Path) -> None:
    for number, (K, S) in enumerate([(16, 1), (4, 0), (4, 1)]):
        for seed in (0, 1):
            settings = {"algorithm.K": K, "algorithm.S": S}
            write_run(tmp_path / f"{number}-{seed}", [0.5], seed=seed, settings=settings)
    (study,) = studies(find_runs([tmp_path]))
    # in the order of the numbers, not of their letters
    assert labels(study) == {"llcg K=4 S=0": [0, 1], "llcg K=4 S=1": [0, 1], "llcg K=16 S=1": [0, 1]}
    assert study.keys == {"algorithm.K": "K", "algorithm.S": "S"}
    looks = [(style["color"], style["linestyle"]) for style in styles(study.groups)]
    assert len(set(looks)) == 3


def test_what_a_method_always_has_is_not_named(tmp_path: Path) -> None:
    """llcg and psgd_pa differ in rho, S and batchnorm_stats by their presets."""
    write_run(tmp_path / "1", [0.5])
    write_run(tmp_path / "2", [0.5], "psgd_pa")
    (study,) = studies(find_runs([tmp_path]))
    assert labels(study) == {"llcg": [3], "psgd_pa": [3]}
    assert study.keys == {}


def test_what_was_changed_for_one_method_is_named(tmp_path: Path) -> None:
    write_run(tmp_path / "1", [0.5], settings={"algorithm.K": 4.0})
    write_run(tmp_path / "2", [0.5], "psgd_pa")
    write_run(tmp_path / "3", [0.5], "psgd_pa", settings={"algorithm.batchnorm_stats": "recalibrate"})
    (study,) = studies(find_runs([tmp_path]))
    expected = {"llcg K=4", "psgd_pa batchnorm_stats=average", "psgd_pa batchnorm_stats=recalibrate"}
    assert set(labels(study)) == expected


def test_short_names_that_are_not_clear_stay_whole(tmp_path: Path) -> None:
    for n in (1, 2):
        settings = {"partition.seed": n, "other.seed": n, "model.name": f"m{n}"}
        write_run(tmp_path / str(n), [0.5], settings=settings)
    (study,) = studies(find_runs([tmp_path]))
    assert study.keys == {"model.name": "model", "other.seed": "other.seed", "partition.seed": "partition.seed"}


def test_graphs_are_apart(tmp_path: Path) -> None:
    write_run(tmp_path / "1", [0.5], dataset="a", settings={"dataset.name": "a"})
    write_run(tmp_path / "2", [0.5], dataset="b", settings={"dataset.name": "b", "dataset.subset": None})
    write_run(tmp_path / "3", [0.5], dataset="b", settings={"dataset.name": "b", "dataset.subset": 100})
    assert [study.title for study in studies(find_runs([tmp_path]))] == ["a", "b (1)", "b (2)"]


def test_a_seed_that_was_run_again_counts_once(tmp_path: Path) -> None:
    """The newest of its runs; counted as seeds of their own, equal runs would make the spread too small."""
    for name, seed, score in (("old", 0, 0.4), ("new", 0, 0.5), ("other", 1, 0.6)):
        write_run(tmp_path / name, [score], seed=seed)
        age = {"old": 100, "new": 200, "other": 50}[name]
        os.utime(tmp_path / name / "summary.json", (age, age))
    (study,) = studies(find_runs([tmp_path]))
    (group,) = study.groups
    assert [run.path.name for run in group.runs] == ["new", "other"]
    assert [run.path.name for run in group.repeated] == ["old"]
    (row,) = results_table(study)
    assert (row["seeds"].text, row["final val %"].text) == ("2", "55.00 ± 7.07")
    assert [row["rounds"].text for row in runs_table(study)] == ["1", "1", "1, seed run again"]
    page, _ = write_report([tmp_path])
    assert "3 runs of llcg" in page.read_text()
    assert "the newest run counts; in no mean: 1." in page.read_text()


def test_the_newest_run_is_the_one_that_was_started_last(tmp_path: Path) -> None:
    """Whichever folder was copied later."""
    for name, day, copied in (("new", 2, 100), ("old", 1, 200)):
        write_run(tmp_path / name, [0.5])
        starts = [{"date": f"2026-01-0{day}T10:00:00+01:00"}]
        (tmp_path / name / "starts.json").write_text(json.dumps(starts))
        os.utime(tmp_path / name / "summary.json", (copied, copied))
    (study,) = studies(find_runs([tmp_path]))
    assert [run.path.name for run in study.groups[0].runs] == ["new"]


def test_methods_of_ones_own_with_the_same_class_name_are_apart(tmp_path: Path) -> None:
    for seed, target in ((0, "first.Mine"), (1, "second.Mine"), (0, "second.Mine")):
        folder = tmp_path / f"{target}{seed}"
        write_run(folder, [0.5], "Mine", seed=seed, settings={"algorithm.target": target})
    write_run(tmp_path / "llcg", [0.5])
    (study,) = studies(find_runs([tmp_path]))
    assert labels(study) == {"llcg": [3], "Mine target=first.Mine": [0], "Mine target=second.Mine": [0, 1]}
