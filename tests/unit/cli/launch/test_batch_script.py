"""`llcg slurm`: options and overrides told apart, resources by hand, and what launch/slurm.sbatch shares with it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from llcg_dist.cli.launch.batch_script import Request, batch_script, parse
from llcg_dist.cli.launch.slurm import main
from llcg_dist.cli.launch.slurm_resources import Resources, resources_of
from llcg_dist.cli.main import run
from llcg_dist.config.compose import load_config
from llcg_dist.errors import UserError
from tests.helpers.training import TINY, cut

LAUNCH = Path(__file__).parents[4] / "launch"


def options_of(script: str) -> dict[str, str]:
    """{option: value} of the lines that sbatch reads."""
    lines = re.findall(r"^#SBATCH --([\w-]+)(?:=(.*))?$", script, re.MULTILINE)
    return dict(lines)


def test_options_and_overrides_are_told_apart() -> None:
    words = [
        "--nodes",
        "3",
        "algorithm.K=4",
        "-t2:00:00",
        "-p",
        "long",
        "--exclusive",
        "seed=1",
        "--mem=4G",
        "--submit",
    ]
    request = parse([*words, "--to", "job.sbatch"])
    assert request.overrides == ["algorithm.K=4", "seed=1"]
    assert request.options == {"nodes": "3", "time": "2:00:00", "partition": "long", "exclusive": "", "mem": "4G"}
    assert (request.to, request.submit, request.to_stdout) == ("job.sbatch", True, False)
    assert parse(["-", "--requeue", "-"]).to_stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-m", "seed=0,1"], "submitit_slurm"),
        (["-Z"], "write its long form"),
        (["--nodes"], "--nodes: needs a value"),
        (["--to"], "--to: needs a value"),
        (["-", "--submit"], "leave out --submit"),
    ],
)
def test_mistakes_in_options(words: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        parse(words)


def test_resources_follow_from_ranks_threads_and_nodes(tmp_path: Path) -> None:
    settings = ["cluster.num_machines=8", f"partition.root={tmp_path}"]
    assert resources_of(load_config(settings), None) == Resources([5, 4], 1, None)
    on_three = resources_of(load_config([*settings, "cluster.threads=4"]), 3)
    assert options_of(batch_script(Request(), on_three)) | {"signal": ""} == {
        **{"job-name": "llcg", "nodes": "3", "ntasks-per-node": "1", "cpus-per-task": "12"},
        **{"requeue": "", "open-mode": "append", "signal": ""},
    }
    alone = resources_of(load_config([*settings, "cluster.backend=loopback"]), None)
    assert options_of(batch_script(Request(), alone))["nodes"] == "1"


def test_memory_is_asked_for_where_the_parts_are_known(tmp_path: Path) -> None:
    settings = [*TINY, f"partition.root={tmp_path}/parts"]
    cut(*settings)
    together = resources_of(load_config(settings), 1)
    apart = resources_of(load_config(settings), 3)
    assert together.memory is not None
    assert apart.memory is not None
    assert 1.2e9 < together.memory < 2.5e9  # three ranks of 320 MB and the libraries that they share, a quarter more
    assert 0.5e9 < apart.memory < together.memory
    assert options_of(batch_script(Request(), together))["mem"] == "2G"
    assert options_of(batch_script(Request(options={"mem": "9G"}), together))["mem"] == "9G"


def test_the_script_is_written_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["slurm", "--comment=it's mine", "algorithm=psgd_pa", "model.arch='SS'"]) == 0
    assert "Submit it with: sbatch llcg.sbatch" in capsys.readouterr().out
    script = (tmp_path / "llcg.sbatch").read_text()
    assert script.endswith(
        f"""exec {sys.executable} -m llcg_dist slurm --run algorithm=psgd_pa 'model.arch='"'"'SS'"'"'' "$@"\n"""
    )
    subprocess.run(["bash", "-n", "llcg.sbatch"], check=True, timeout=10)
    assert run(["slurm"]) == 2
    assert "llcg.sbatch: is there already" in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["slurm", "--submit"]) == 2
    assert "sbatch: not found on this host" in capsys.readouterr().err
    assert run(["slurm", "-", "algorithm.rho=0"]) == 2
    assert capsys.readouterr().err == "llcg: error: algorithm.rho=0.0: must be a positive number\n"


def test_the_script_of_a_checkout_asks_for_the_same(tmp_path: Path) -> None:
    computed = options_of(batch_script(Request(), resources_of(load_config([f"partition.root={tmp_path}"]), None)))
    fixed = options_of((LAUNCH / "slurm.sbatch").read_text())
    assert fixed == {name: value for name, value in computed.items() if name != "cpus-per-task"}


@pytest.mark.parametrize("arguments", [["check"], ["agent", "seed=1"], []])
def test_outside_of_slurm_it_says_so(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("llcg: error: this is not a SLURM job: ")


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        (["slurm.sbatch", "seed=1"], 2, "llcg: error: this is not a SLURM job: "),
        (["local.sh", "--help"], 0, "usage: llcg train "),
        (["local.sh", "-p"], 2, "local.sh: -p must be followed by the number of machines"),
        (["local.sh", "-p", "0", "seed=1"], 2, "llcg: error: cluster.num_machines=0: "),
    ],
)
def test_scripts_of_a_checkout_call_llcg(script: list[str], code: int, said: str, tmp_path: Path) -> None:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    done = subprocess.run(
        ["bash", str(LAUNCH / script[0]), *script[1:]],
        env=inherited | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == code
    shown = done.stderr or done.stdout
    assert shown.startswith(said)
    assert code == 0 or len(shown.splitlines()) == 1
