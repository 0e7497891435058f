"""A run's config.yaml is read as plain values, whoever wrote it."""

import copy
import os
from pathlib import Path

import pytest
import yaml

from llcg_dist.config.compose import load_config, recorded_yaml
from llcg_dist.config.recorded import read_config, read_settings, read_settings_to_resume
from llcg_dist.config.run_format import RUN_FORMAT
from llcg_dist.errors import UserError

BOMB = "a: &a [x, x]\nb: &b [*a, *a, *a]\nc: [*b, *b, *b]\n"


SETTINGS = recorded_yaml(load_config(["experiment=tiny"]))


def written(folder: Path, content: bytes | str) -> Path:
    path = folder / "config.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("experiment", ["tiny", "real/cora_gcn"])
def test_round_trip(tmp_path: Path, experiment: str) -> None:
    config = load_config([f"experiment={experiment}", "train.local_lr=1e-5", "sampling.fanout=[10,5]"])
    assert read_config(written(tmp_path, recorded_yaml(config))) == config


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (BOMB, "it has aliases"),
        ("seed: ${oc.env:HOME}", "seed=${oc.env:HOME}: recorded settings have values"),
        ("model: {options: {a: [1, '${seed}']}}", "model.options.a=${seed}"),
        ("a: ''\n${seed}: 1", "recorded settings have values"),
        ("a: !!python/object/apply:os.system [id]", "could not determine a constructor"),
        ("- 1\n- 2", "it holds no settings"),
        ("seed: 1\nseed: 2", "duplicate key seed"),
        ("just words", "it holds no settings"),
        ("a: [1", ""),
        ("", "it holds no settings"),
        (b"\xff\xfe", ""),
        (b"a: " + b"x" * 1_000_001, "more than 1,000,000 bytes"),
        ("a: " + "[" * 400_000, "it is nested more than 20 deep"),
        ("[" * 400_000, "it holds no settings"),
    ],
)
def test_anything_else_is_refused_in_one_line(tmp_path: Path, content: bytes | str, reason: str) -> None:
    path = written(tmp_path, content)
    for read in (read_settings, read_config):
        with pytest.raises(UserError) as caught:
            read(path)
        message = str(caught.value)
        assert message.startswith(f"{path}: ")
        assert reason in message
        assert os.environ["HOME"] not in message.removeprefix(str(path))
        assert len(message) < len(str(path)) + 400
        assert "\n" not in message


def test_locations_are_values_as_they_stand(tmp_path: Path) -> None:
    path = written(tmp_path, recorded_yaml(load_config(["experiment=tiny"])))
    strange = "${oc.env:HOME}/a: [b"
    assert read_config(path, {"partition.root": strange}).partition.root == strange
    with pytest.raises(UserError, match="dataset.root=x: the run's dataset=synthetic has no such setting"):
        read_config(path, {"dataset.root": "x"})


@pytest.mark.parametrize("settings", ["dataset: {source: moon}", "dataset: 3", "dataset: {source: [a]}", "seed: 1"])
def test_a_data_set_that_is_none(tmp_path: Path, settings: str) -> None:
    with pytest.raises(UserError, match=r"not the settings of a run \(dataset.source: "):
        read_config(written(tmp_path, settings))


def without(*keys: str) -> str:
    """The settings of the tiny job, without the lines of these keys."""
    return "\n".join(line for line in SETTINGS.splitlines() if not line.startswith(keys))


def test_the_format_is_written_and_is_no_setting(tmp_path: Path) -> None:
    assert SETTINGS.startswith(f"format: {RUN_FORMAT}\n")
    assert "format" not in read_settings(written(tmp_path, SETTINGS))
    unnumbered = written(tmp_path, without("format:"))
    assert read_config(unnumbered) == load_config(["experiment=tiny"])


@pytest.mark.parametrize("number", [RUN_FORMAT + 1, -1, "1.0", "true", "null", "[1]", '"a\\nb"', "x" * 1000])
def test_an_unknown_format_is_refused_in_one_line(tmp_path: Path, number: int | str) -> None:
    path = written(tmp_path, f"format: {number}\n{without('format:')}")
    for read in (read_settings, read_settings_to_resume, read_config):
        with pytest.raises(UserError, match=f"^{path}: format .* is that of another version of llcg_dist") as caught:
            read(path)
        assert len(str(caught.value).removeprefix(str(path)).splitlines()[0]) < 200
        assert "\n" not in str(caught.value)


def test_a_setting_that_was_not_there_yet_has_its_default(tmp_path: Path) -> None:
    """A key, one of the data set's own, and a whole section; options are what was given."""
    complete = read_settings_to_resume(written(tmp_path, SETTINGS))
    assert complete == read_settings(written(tmp_path, SETTINGS))
    complete["model"]["options"] = {"depth": 3}
    fewer = copy.deepcopy(complete)
    del fewer["on_nonfinite"], fewer["dataset"]["multilabel"], fewer["early_stop"]
    path = written(tmp_path, yaml.safe_dump({"format": RUN_FORMAT} | fewer))
    assert read_settings(path) == fewer
    assert read_settings_to_resume(path) == complete


def test_the_oldest_runs_have_what_they_recorded(tmp_path: Path) -> None:
    """Before formats had numbers, defaults of new settings were not held to leave a run as it was."""
    assert "on_nonfinite" not in read_settings_to_resume(written(tmp_path, without("format:", "on_nonfinite:")))
