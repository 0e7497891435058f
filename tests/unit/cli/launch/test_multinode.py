"""What `llcg multinode` and launch/multinode.sh say before anything starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from llcg_dist.cli.launch.multinode import _endpoint
from llcg_dist.cli.main import run
from llcg_dist.errors import UserError

SCRIPT = Path(__file__).parents[4] / "launch" / "multinode.sh"


@pytest.mark.parametrize(
    ("head", "endpoint"),
    [
        ("10.0.0.1", ("10.0.0.1", 29500)),
        ("node1:4000", ("node1", 4000)),
        ("fe80::1", ("fe80::1", 29500)),
        ("[fe80::1]", ("fe80::1", 29500)),
        ("[fe80::1]:4000", ("fe80::1", 4000)),
    ],
)
def test_the_head(head: str, endpoint: tuple[str, int]) -> None:
    assert _endpoint(head) == endpoint


@pytest.mark.parametrize("head", ["", "node1:", ":4000", "node1:x", "node1:70000", "node1:0"])
def test_a_head_that_is_no_address(head: str) -> None:
    with pytest.raises(UserError, match="must be ADDRESS or ADDRESS:PORT"):
        _endpoint(head)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--here", "0", "run_dir=r"], "--hosts and --here"),
        (["--there", "1", "run_dir=r"], "--there: no such option"),
        (["algorithm.K=0", "run_dir=r"], "algorithm.K=0"),
        (["experiment=tiny"], "run_dir: must be set"),
        (["experiment=tiny", "run_dir=r"], "needs a key; `llcg key job.key` makes one: copy it to every host and add"),
        (["experiment=tiny", "run_dir=r", "cluster.key_file=no.key"], "cluster.key_file=no.key: cannot be read"),
        (["experiment=tiny", "run_dir=r", "cluster.sealed=false"], "the head localhost: is 127.0.0.1 on this host"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LLCG_HOSTS", "2")  # as good as --hosts 2
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert run(["multinode", "--head", "localhost", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line


def test_what_is_missing_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["multinode", "--head", "10.0.0.1", "run_dir=r"]) == 2
    assert capsys.readouterr().err == (
        "llcg: error: the following arguments are required: --hosts (llcg multinode --help)\n"
    )


def test_the_script_explains_itself() -> None:
    done = subprocess.run(
        ["bash", str(SCRIPT), "--help"],
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    for argument in ("--head", "--hosts", "--here", "--job", "--rejoin"):
        assert f"  {argument}" in done.stdout
        assert f"LLCG_{argument[2:].upper()}" in done.stdout
