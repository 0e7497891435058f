"""`llcg partition` in this process: exit codes, and what it writes."""

from pathlib import Path

import pytest

from llcg_dist.cli.main import run
from llcg_dist.config.schema import Verify
from llcg_dist.data.store import read_shard


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_partition_writes_a_share(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["experiment=tiny", "partition=random", f"partition.root={tmp_path}/all"]
    assert run(["partition", *settings, "--share", "1", "--to", f"{tmp_path}/b"]) == 0
    (share,) = (tmp_path / "b").iterdir()
    assert str(share) in capsys.readouterr().out
    assert names(share) == ["part1"]
    read_shard(share / "part1", Verify.full)


@pytest.mark.parametrize("arguments", [["--share", "1"], ["--to", "there"], ["--share", "1", "--to"]])
def test_share_and_to_go_together(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["partition", "experiment=tiny", *arguments]) == 2
    assert "--share PARTS and --to FOLDER go together" in capsys.readouterr().err


def test_parts_are_shown_beside_plain_metis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["partition", "experiment=tiny", f"partition.root={tmp_path}", "partition.backend=pymetis"]
    assert run(base) == 0
    assert "these parts" not in capsys.readouterr().out
    assert run([*base, "partition.balance=labels"]) == 0
    lines = {line.split("  ")[0]: line.split() for line in capsys.readouterr().out.splitlines()}
    balanced, plain = (float(lines[name][-1]) for name in ("these parts", "metis"))
    assert balanced < plain  # worst label skew
