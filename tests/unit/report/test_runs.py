"""Records are found, read and checked."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from llcg_dist.errors import UserError
from llcg_dist.report.runs import find_runs, find_unfinished
from tests.helpers.run_records import PARTITION, write_run


def test_runs_are_found_at_and_below_the_paths_oldest_first(tmp_path: Path) -> None:
    for age, name in enumerate(["deep/er/run", "b", "a"]):
        run = write_run(tmp_path / name, [0.1 * age])
        os.utime(run / "summary.json", (1000 + age, 1000 + age))
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / "metrics.jsonl").write_text("")
    (tmp_path / "a" / "mlflow").mkdir()
    (tmp_path / "a" / "mlflow" / "summary.json").write_text("a logger's own")
    expected = [tmp_path / "deep/er/run", tmp_path / "b", tmp_path / "a"]
    assert [run.path for run in find_runs([tmp_path])] == expected
    assert [run.path for run in find_runs([tmp_path / "a", tmp_path])] == expected  # each once
    assert [run.path for run in find_runs([tmp_path / "b"])] == [tmp_path / "b"]
    assert find_unfinished([tmp_path]) == [tmp_path / "unfinished"]


def test_a_run_reads_its_rows_and_settings(tmp_path: Path) -> None:
    folder = write_run(
        tmp_path / "a", [0.25, None, 0.5], settings={"model.hidden": 16}, row={"kappa_sq": 0.1, "feature_id_bytes": 3}
    )
    (folder / "partition.json").write_text(json.dumps(PARTITION))
    (run,) = find_runs([folder])
    assert run.method == "llcg"
    assert run.column("val_score") == [0.25, None, 0.5]
    assert run.sent_megabytes() == pytest.approx([1.523128, 3.046256, 4.569384], rel=1e-12)
    assert run.seconds() == pytest.approx([0.8, 1.6, 2.4])
    assert run.compute_seconds() == pytest.approx([0.7, 1.4, 2.1])
    assert run.cluster_seconds() is None
    assert run.settings["model.hidden"] == 16
    assert run.settings["algorithm.rho"] == 1.1
    assert run.partition == PARTITION
    assert run.extra_columns() == ["kappa_sq"]


def test_times_of_a_correction_beside_the_local_steps(tmp_path: Path) -> None:
    """Local steps take 0.5 s, the correction after them 0.2: 0.9 s beside them is what counts, 0.1 is hidden."""
    (long,) = find_runs([write_run(tmp_path / "a", [0.5, 0.6], row={"seconds_correct_beside": 0.9})])
    (short,) = find_runs([write_run(tmp_path / "b", [0.5, 0.6], row={"seconds_correct_beside": 0.1})])
    assert long.compute_seconds() == pytest.approx([1.1, 2.2])
    assert short.compute_seconds() == pytest.approx([0.7, 1.4])
    assert long.extra_columns() == []


@pytest.mark.parametrize(("value", "total"), [(1.5, 3.0), ("long", None), (None, None)])
def test_cluster_seconds_are_the_sum_of_the_rounds(tmp_path: Path, value: Any, total: float | None) -> None:
    (run,) = find_runs([write_run(tmp_path / "run", [0.5, 0.6], row={"cluster_seconds": value})])
    assert run.cluster_seconds() == total


def refusal(*paths: Path) -> str:
    with pytest.raises(UserError) as refused:
        find_runs(paths)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_paths_without_runs_are_named(tmp_path: Path) -> None:
    assert str(tmp_path / "nowhere") in refusal(tmp_path / "nowhere")
    assert f"no run with a round to show (metrics.jsonl) in {tmp_path}" in refusal(tmp_path)


@pytest.mark.parametrize("name", ["summary.json", "metrics.jsonl", "config.yaml", "partition.json"])
@pytest.mark.parametrize("content", ['{"round": 1', '{"round": 1}', "[1]"], ids=["torn", "other keys", "a list"])
def test_damaged_records_are_named(tmp_path: Path, name: str, content: str) -> None:
    run = write_run(tmp_path / "a", [0.5])
    (run / name).write_text(content)
    if (name, content) == ("config.yaml", '{"round": 1}'):
        assert len(find_runs([tmp_path])) == 1  # settings like any others
    else:
        assert refusal(tmp_path).startswith(f"report: {run / name}: ")


def test_a_torn_record_is_named_with_its_line_and_the_remedy(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [0.5, 0.6])
    text = (run / "metrics.jsonl").read_text()
    (run / "metrics.jsonl").write_text(text[:-20])
    message = refusal(tmp_path)
    assert message.startswith(f"report: {run}/metrics.jsonl: line 2: cannot be read (")
    assert message.endswith("); restore the file, or move the run's folder away")


@pytest.mark.parametrize(
    ("key", "value"),
    [("val_score", float("nan")), ("train_loss", 1e200), ("bytes_up", -1), ("bytes_up", 2**70), ("bytes_down", True)],
)
def test_numbers_that_cannot_be_drawn_are_named(tmp_path: Path, key: str, value: Any) -> None:
    write_run(tmp_path / "a", [0.5], row={key: value})
    assert f"metrics.jsonl: {key} is missing or of the wrong kind" in refusal(tmp_path)


def test_unfinished_runs_come_last_with_what_their_rows_say(tmp_path: Path) -> None:
    started = write_run(tmp_path / "a", [0.5, 0.75, 0.25], settings={"num_rounds": 20, "dataset.name": "cora"})
    (started / "summary.json").unlink()
    (started / "starts.json").write_text('[{"metric": "f1_micro"}]')
    write_run(tmp_path / "b", [0.5, 0.75], settings={"num_rounds": 5}, num_rounds=1)  # resumed with more rounds
    write_run(tmp_path / "c", [0.5], num_rounds=1)
    runs = {run.path.name: run for run in find_runs([tmp_path])}
    assert {name: run.finished for name, run in runs.items()} == {"a": False, "b": False, "c": True}
    assert list(runs)[-1] == "a"
    found = runs["a"].summary
    assert (found["best_val_score"], found["final_val_score"], found["dataset"]) == (0.75, 0.25, "cora")
    assert (found["metric"], found["total_bytes"], runs["a"].rounds_text) == ("f1_micro", 3 * 1_523_128, "3 of 20")


@pytest.mark.parametrize(
    "content", ["[", "7", "{}", '{"val": null, "test": {"classes": [1]}}', '{"val": {"classes": 3}, "test": null}']
)
def test_damaged_class_results_are_named(tmp_path: Path, content: str) -> None:
    run = write_run(tmp_path / "a", [0.5])
    (run / "classes.json").write_text(content)
    assert refusal(tmp_path).startswith(f"report: {run}/classes.json: ")


@pytest.mark.parametrize("name", ["metrics.jsonl", "config.yaml"])
def test_missing_records_are_named(tmp_path: Path, name: str) -> None:
    run = write_run(tmp_path / "a", [0.5])
    (run / name).unlink()
    assert refusal(tmp_path).startswith(f"report: {run / name}: ")


def test_rows_must_be_those_of_rounds_one_two_three(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [0.5, 0.6])
    second = (run / "metrics.jsonl").read_text().splitlines()[1]
    (run / "metrics.jsonl").write_text(second + "\n")
    assert "metrics.jsonl: its rows are not those of rounds" in refusal(tmp_path)
    (run / "metrics.jsonl").write_text("")
    assert "metrics.jsonl: its rows are not those of rounds" in refusal(tmp_path)


def test_settings_are_read_as_plain_values(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [0.5])
    (tmp_path / "a" / "config.yaml").write_text("seed: ${oc.env:HOME}")
    with pytest.raises(UserError, match=r"config.yaml: not the settings of a run \(seed=\$\{oc.env:HOME\}"):
        find_runs([tmp_path])


def test_a_run_is_read_once_however_many_paths_lead_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path / "runs" / "a", [0.5])
    monkeypatch.chdir(tmp_path)
    paths = [Path("runs"), tmp_path / "runs", Path("runs/../runs/a")]
    assert len(find_runs(paths)) == 1
    (tmp_path / "runs" / "a" / "summary.json").unlink()
    assert len(find_runs(paths)) == 1


def test_a_seed_may_be_as_large_as_the_settings_allow(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [0.5], seed=10**20)
    (run,) = find_runs([tmp_path])
    assert run.summary["seed"] == 10**20
