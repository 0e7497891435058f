"""The pages of the reference leave nothing out: every command, and every file, column and key of real runs."""

import json
import re
from pathlib import Path

import pytest

import llcg_dist
from llcg_dist.cli.help import pages
from llcg_dist.cli.main import run
from llcg_dist.cli.usage import USAGES
from tests.helpers.pages import DOCS
from tests.helpers.training import train_in_process

TINY = ("dataset.nodes=200", "num_rounds=2", "algorithm.K=1", "model.hidden=8", "logger=none", "partition=random")
RUNS = {
    "llcg": (),
    "ggs": ("algorithm=ggs",),
    "measured": ("diagnostics.every=1", "algorithm.S=auto", "algorithm.batchnorm_stats=best"),
    "estimated": ("evaluate.sample=0.5", "early_stop.patience=1", "algorithm.aggregate=learned"),
    "beside": ("algorithm.correction=beside", "algorithm.clip=1", "algorithm.noise=1", "cluster.num_machines=3"),
}
"""Settings that between them write most of the columns."""


def named(page: str) -> list[str]:
    """What a page writes as code; a trailing * stands for anything."""
    text = (DOCS / "reference" / page).read_text()
    return [word for span in re.findall(r"`([^`\n]+)`", text) for word in span.split()]


def is_named(name: str, names: list[str]) -> bool:
    return any(name == known or known.endswith("*") and name.startswith(known[:-1]) for known in names)


@pytest.mark.parametrize("settings", RUNS.values(), ids=RUNS)
def test_every_column_key_and_file_of_a_run_is_described(
    settings: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    train_in_process(*TINY, "cluster.backend=loopback", "cluster.num_machines=2", *settings, "run_dir=run")
    names, page = named("run.md"), (DOCS / "reference" / "run.md").read_text()
    rows = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    assert [column for row in rows for column in row if not is_named(column, names)] == []
    assert [key for key in json.loads(Path("run/summary.json").read_text()) if not is_named(key, names)] == []
    assert [path.name for path in Path("run").iterdir() if path.name not in page] == []
    stored = [path.name for path in Path("partitions").rglob("*") if path.is_file()]
    described = (DOCS / "reference" / "stores.md").read_text()
    described += "arrays.json owner.npy position.npy"  # of topology/, which is derived
    assert [name for name in stored if name not in described] == []


def test_every_command_has_its_section(capsys: pytest.CaptureFixture[str]) -> None:
    page = (DOCS / "reference" / "cli.md").read_text()
    assert re.findall(r"^## llcg (\w+)\n\n.+\n(?:.+\n)*\n<!-- usage: \1 -->$", page, re.MULTILINE) == list(USAGES)
    assert run(["help", "cli"]) == 0
    shown = capsys.readouterr().out
    assert all(usage in shown for usage in USAGES.values())


def test_every_public_name_has_its_section() -> None:
    page = pages()["api"].read_text()
    assert set(re.findall(r"^::: llcg_dist\.(\w+)$", page, re.MULTILINE)) == {*llcg_dist.__all__} - {"__version__"}
