"""The key of a job: made, refused, and handed on to ranks where nobody else finds it."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from llcg_dist.cli.main import run
from llcg_dist.comm.job_key import KEY_VARIABLE, hold_key, launchers_key, new_key, ranks_key, read_key, write_key
from llcg_dist.config.cluster import ClusterConfig
from llcg_dist.errors import UserError
from tests.helpers.strangers import as_nobody


@pytest.mark.parametrize("umask", [0, 0o22, 0o277])
def test_llcg_key_writes_for_its_owner_alone(
    umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = os.umask(umask)
    try:
        assert run(["key"]) == run(["key", "other.key"]) == 0
    finally:
        os.umask(before)
    for name in ("job.key", "other.key"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        assert f"cluster.key_file={name}" in capsys.readouterr().out or name == "other.key"
    assert read_key("job.key") != read_key("other.key")
    assert read_key("job.key").hex() not in capsys.readouterr().out


def test_llcg_key_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "job.key"
    path.write_text("precious")
    for arguments in (["key", str(path)], ["key", "a", "b"], ["key", "--force"], ["key", str(tmp_path / "no" / "k")]):
        assert run(arguments) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("llcg: error: ")
    assert path.read_text() == "precious"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o620])
def test_a_key_that_others_can_use_is_refused(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "job.key"
    write_key(path)
    path.chmod(mode)
    with pytest.raises(UserError, match=f"others than its owner may use it .mode {mode:o}.; chmod 600"):
        read_key(str(path))
    path.chmod(0o400)
    assert len(read_key(str(path))) == 32


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"00" * 31, b"00" * 33, b"zz" * 32, b"\0" * 32])
def test_a_file_without_a_key(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "job.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(UserError, match="holds no key; `llcg key FILE` makes one"):
        read_key(str(path))


def test_which_key_a_launcher_takes(tmp_path: Path) -> None:
    write_key(tmp_path / "job.key")
    named = ClusterConfig(key_file=str(tmp_path / "job.key"))
    assert launchers_key(named) == read_key(str(tmp_path / "job.key"))
    fresh = launchers_key(ClusterConfig()), launchers_key(ClusterConfig())
    assert fresh[0] != fresh[1]
    assert launchers_key(ClusterConfig(sealed=False)) is None
    with pytest.raises(UserError, match="no use with cluster.sealed=false"):
        ClusterConfig(sealed=False, key_file="job.key").check()


def test_which_key_a_rank_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_key(tmp_path / "job.key")
    named = ClusterConfig(key_file=str(tmp_path / "job.key"))
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert ranks_key(ClusterConfig()) is None  # plain torchrun
    assert ranks_key(named) == read_key(str(tmp_path / "job.key"))
    key = new_key()
    monkeypatch.setenv(KEY_VARIABLE, hold_key(key))
    assert ranks_key(named) == ranks_key(ClusterConfig()) == key
    assert ranks_key(ClusterConfig(sealed=False)) is None
    monkeypatch.setenv(KEY_VARIABLE, "/proc/1/fd/999")
    with pytest.raises(UserError, match="the launcher's key cannot be read"):
        ranks_key(ClusterConfig())
    monkeypatch.setenv(KEY_VARIABLE, hold_key(None))
    assert ranks_key(ClusterConfig()) is None


def test_what_a_launcher_holds_is_for_its_user_alone() -> None:
    key = new_key()
    path = hold_key(key)
    command = [sys.executable, "-c", f"print(open({path!r}).read())"]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip() == key.hex()
    denied = subprocess.run(as_nobody("cat", path), capture_output=True, text=True, timeout=60)
    assert denied.returncode != 0
    assert "Permission denied" in denied.stderr
