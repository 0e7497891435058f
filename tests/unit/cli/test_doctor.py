"""The command in this process: mistakes, hosts that hold a share, and what the start of `train` takes from it."""

import dataclasses
from pathlib import Path

import pytest

from llcg_dist.cli.launch import elastic
from llcg_dist.cli.main import run
from llcg_dist.doctor import host as host_facts

TINY = ["experiment=tiny", "partition=random", "partition.root=parts"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def only_error(capsys: pytest.CaptureFixture[str]) -> str:
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["algorithm.K=0"], "algorithm.K"),
        (["experiment=tiny", "--ranks-here=9"], "--ranks-here=9"),
        (["experiment=tiny", "--ranks-here=x"], "--ranks-here=x"),
        (["experiment=tiny", "--all"], "--all"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: list[str], names: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["doctor", *arguments]) == 2
    assert names in only_error(capsys)
    assert list(tmp_path.iterdir()) == []


def test_help_tells_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--help"]) == 0
    assert "--ranks-here=N" in capsys.readouterr().out
    assert run(["--help"]) == 0
    assert "llcg doctor" in capsys.readouterr().out


def test_parts_that_cannot_be_built_are_a_finding_beside_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", *TINY, "cluster.num_machines=601"]) == 2
    captured = capsys.readouterr()
    assert "error cluster.num_machines=601" in captured.out
    assert "versions" in captured.out


def test_a_host_with_parts_alone_is_told_what_it_can_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["partition", *TINY]) == 0
    (store,) = Path("parts").iterdir()
    (store / "manifest.json").unlink()
    assert run(["doctor", *TINY]) == 0
    assert "holds part(s) 0, 1 alone" in capsys.readouterr().out


def test_train_starts_nothing_where_the_parts_do_not_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elastic, "launch", lambda *args: pytest.fail("processes were started"))
    assert run(["partition", *TINY]) == 0
    (store,) = Path("parts").iterdir()
    store.rename(store.with_name(store.name.replace("-2-0", "-3-0")))
    assert run(["train", *TINY, "cluster.num_machines=3", "run_dir=run"]) == 2
    assert "cluster.num_machines=3, but the store has 2 part(s)" in only_error(capsys)
    assert not Path("run").exists()


def test_train_warns_in_a_line_and_goes_on_or_refuses_what_cannot_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    def launch(processes: int, *rest: object) -> int:
        started.append(processes)
        return 0

    monkeypatch.setattr(elastic, "launch", launch)
    sound = host_facts.this_host()

    def on_a_host_with(total: float, free: float) -> None:
        changed = dataclasses.replace(sound, memory_total=int(total), memory_free=int(free))
        monkeypatch.setattr(host_facts, "this_host", lambda interface: changed)

    on_a_host_with(64e9, 60e9)
    assert run(["train", *TINY, "run_dir=run"]) == 0
    assert "warning" not in capsys.readouterr().out
    on_a_host_with(64e9, 1e9)
    assert run(["train", *TINY, "run_dir=run"]) == 0
    (warning,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: ")]
    assert "1.0 GB are free" in warning
    assert started == [3, 3]
    on_a_host_with(1e9, 0.9e9)
    assert run(["train", *TINY, "run_dir=run"]) == 2
    assert "this host has 1.0 GB in all" in only_error(capsys)
    assert started == [3, 3]


def test_a_graph_that_cannot_be_allocated_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", *TINY, "dataset.features=1000000000000"]) == 2
    assert "not enough memory" in only_error(capsys)
