"""The records that a run needs to go on, in a second folder: written when told, and copied back where they are lost."""

from pathlib import Path
from typing import Any

import pytest

from llcg_dist.records.mirror import RecordsMirror, restore_records
from llcg_dist.records.reading import readable_rows


def rows(count: int) -> list[dict[str, Any]]:
    return [{"round": r} for r in range(1, count + 1)]


def test_what_is_put_is_written_later(tmp_path: Path) -> None:
    mirror = RecordsMirror(tmp_path / "mirror")
    mirror.put("starts.json", b"one")
    mirror.put("model.pt", b"not needed to go on")
    mirror.put_rows(rows(1))
    assert not (tmp_path / "mirror").exists()
    mirror.write()
    assert (tmp_path / "mirror" / "starts.json").read_bytes() == b"one"
    assert not (tmp_path / "mirror" / "model.pt").exists()
    mirror.put("starts.json", b"two")
    mirror.put_rows(rows(3))
    mirror.write()
    assert (tmp_path / "mirror" / "starts.json").read_bytes() == b"two"
    assert readable_rows(tmp_path / "mirror") == rows(3)


def test_what_could_not_be_written_is_written_with_the_next(tmp_path: Path) -> None:
    place = tmp_path / "mirror"
    place.write_text("in the way")
    mirror = RecordsMirror(place)
    mirror.put("config.yaml", b"seed: 0")
    mirror.put_rows(rows(1))
    with pytest.raises(OSError, match="exists"):
        mirror.write()
    place.unlink()
    mirror.put_rows(rows(2))
    mirror.write()
    assert (place / "config.yaml").read_bytes() == b"seed: 0"
    assert readable_rows(place) == rows(2)


def test_only_what_is_lost_is_copied_back(tmp_path: Path) -> None:
    run_dir, mirror = tmp_path / "run", RecordsMirror(tmp_path / "mirror")
    for name in ("config.yaml", "starts.json"):
        mirror.put(name, b"of the mirror")
    mirror.put_rows(rows(4))
    mirror.write()
    run_dir.mkdir()
    (run_dir / "config.yaml").write_bytes(b"own")
    (run_dir / "metrics.jsonl").write_text('{"round": 1}\n{"rou')
    assert restore_records(tmp_path / "mirror", run_dir) == ["starts.json", "metrics.jsonl"]
    assert (run_dir / "config.yaml").read_bytes() == b"own"
    assert readable_rows(run_dir) == rows(4)
    assert restore_records(tmp_path / "mirror", run_dir) == []
    assert restore_records(tmp_path / "nowhere", run_dir) == []
