"""launch/slurm.sbatch and `llcg slurm` on a real SLURM of two nodes: the bits of `llcg train`, failures, requeues."""

import contextlib
import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.jobs import BIN, REPOSITORY, finish, start, wait_for_rounds
from tests.helpers.run_files import model_bytes, rows
from tests.helpers.slurm import Slurm, processes_of, slurm_cluster
from tests.helpers.sockets import listening
from tests.helpers.training import cut, train_in_process

SCRIPT = str(REPOSITORY / "launch" / "slurm.sbatch")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with slurm_cluster(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


def model_in_one_process(folder: Path, *job: str) -> bytes:
    """The bits of `llcg train` (test_equivalence) without starting ranks once more, on the parts of the SLURM job."""
    train_in_process(*job, f"partition.root={folder}/partitions", f"run_dir={folder}/one_process")
    return model_bytes(folder / "one_process")


def test_slurm_trains_over_both_nodes_to_the_bits_of_llcg_train(slurm: Slurm, tmp_path: Path) -> None:
    job = ["experiment=tiny", "cluster.num_machines=3"]
    number = slurm.sbatch(SCRIPT, *job, cwd=tmp_path)
    seen: dict[str, set[str]] = {"llcg_dist.cli.launch.slurm": set(), "llcg_dist.train": set()}

    def look_at_ports() -> None:
        for pid in processes_of(slurm):
            with contextlib.suppress(OSError):  # it may end meanwhile
                command = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
                ours = seen.keys() & set(command) if "python" in command[0] else set()  # srun's words have them, too
                for module in ours:
                    seen[module] |= listening([pid]).get(pid, set())

    ended = slurm.wait(number, meanwhile=look_at_ports)
    log = (tmp_path / f"slurm-{number}.out").read_text()
    assert ended["JobState"] == "COMPLETED", log
    run_dir = tmp_path / "runs" / f"slurm-{number}"
    for node in ("n1", "n2"):  # two of the four ranks each, every one with its own log
        assert len(list((run_dir / "logs" / "torchrun" / node).glob("*/attempt_0/*/stderr.log"))) == 2
    ranks = json.loads((run_dir / "logs" / "ranks.json").read_text())["rank_of_part"]
    assert sorted(ranks) == [1, 2, 3]
    assert "round 3/3" in log
    assert seen == {
        "llcg_dist.cli.launch.slurm": {"127.0.0.1"},
        "llcg_dist.train": {"127.0.0.1"},
    }  # the nodes' NodeAddr

    assert stat.S_IMODE((run_dir / "job.key").stat().st_mode) == 0o600  # what seals the nodes' store
    assert model_bytes(run_dir) == model_in_one_process(tmp_path, *job)
    assert not processes_of(slurm)


def test_a_slurm_job_with_a_mistake_fails_and_says_why(slurm: Slurm, tmp_path: Path) -> None:
    number = slurm.sbatch(SCRIPT, "experiment=tiny", "algorithm.rho=0", cwd=tmp_path)
    ended = slurm.wait(number)
    assert (ended["JobState"], ended["ExitCode"]) == ("FAILED", "2:0")
    said = (tmp_path / f"slurm-{number}.out").read_text().splitlines()
    assert said == ["llcg: error: algorithm.rho=0.0: must be a positive number"]
    assert not (tmp_path / "runs").exists()


@pytest.mark.full
def test_llcg_slurm_submits_a_job_with_the_resources_that_it_computes(slurm: Slurm, tmp_path: Path) -> None:
    """From a folder with presets of its own; the parts are on disk, so that the memory is known."""
    (tmp_path / "presets" / "experiment").mkdir(parents=True)
    preset = "# @package _global_\ndefaults: [tiny]\nnum_rounds: 2\n"
    (tmp_path / "presets" / "experiment" / "mine.yaml").write_text(preset)
    cut("experiment=tiny", f"partition.root={tmp_path}/partitions")
    job = ["experiment=mine", "cluster.backend=loopback"]  # of one rank
    said = slurm.run("llcg", "slurm", "--submit", "--config-dir", "presets", "--time=5", *job, cwd=tmp_path)
    number = int(said.removeprefix("submitted as job ").partition(":")[0])
    ended = slurm.wait(number)
    log = (tmp_path / f"slurm-{number}.out").read_text()
    assert ended["JobState"] == "COMPLETED", log
    assert "round 2/2" in log
    assert (ended["NumNodes"], ended["CPUs/Task"], ended["TimeLimit"]) == ("1", "1", "00:05:00")
    assert (ended["MinMemoryNode"], ended["Requeue"]) == ("1G", "1")
    command = [str(BIN / "llcg"), "slurm", "--submit", "--partition=nowhere"]
    refused = finish(start(command, tmp_path, slurm.environment))
    assert refused.code == 2
    assert refused.only_error().startswith("llcg: error: sbatch: error: ")


@pytest.mark.alone
@pytest.mark.full
@pytest.mark.parametrize("how", [("scontrol", "requeue"), ("scancel", "--batch", "--signal=USR1")], ids=" ".join)
def test_a_requeued_slurm_job_ends_with_the_same_bits(slurm: Slurm, tmp_path: Path, how: tuple[str, ...]) -> None:
    """Requeued by someone else; or by itself, at the signal that comes before the time limit."""
    job = ["experiment=tiny", "num_rounds=150"]
    undisturbed = model_in_one_process(tmp_path, *job)
    number = slurm.sbatch(SCRIPT, *job, cwd=tmp_path)
    run_dir = tmp_path / "runs" / f"slurm-{number}"
    wait_for_rounds(run_dir, 5)
    slurm.requeue(number, *how)
    assert not (run_dir / "summary.json").exists(), "the job was too quick to be disturbed"
    ended = slurm.wait(number)
    log = (tmp_path / f"slurm-{number}.out").read_text()
    assert (ended["JobState"], ended["Restarts"]) == ("COMPLETED", "1"), log
    assert "going on after round" in log
    assert [row["round"] for row in rows(run_dir)] == list(range(1, 151))
    assert model_bytes(run_dir) == undisturbed


@pytest.mark.full
def test_a_sweep_through_submitit_runs_on_slurm(slurm: Slurm, tmp_path: Path) -> None:
    """One SLURM job per configuration, on two nodes each; the one that cannot work is not submitted."""
    command = [str(BIN / "llcg"), "train", "-m", "experiment=tiny", "algorithm.K=1,2,0"]
    command += ["hydra/launcher=submitit_slurm", "hydra.launcher.nodes=2", "hydra.launcher.timeout_min=5"]
    swept = finish(start(command, tmp_path, slurm.environment), limit=280)
    (folder,) = (tmp_path / "runs" / "sweeps").iterdir()
    assert swept.code == 1, swept
    assert "2 of 3 jobs done" in swept.out
    listed = [line for line in swept.err.splitlines() if line.startswith("llcg: error: ")]  # submitit speaks of sacct
    assert listed == ["llcg: error: algorithm.K=0: algorithm.K=0.0: must be a positive number of local steps"]
    for K in (1, 2):
        run_dir = folder / f"algorithm.K={K}"
        logs = run_dir / "logs" / "torchrun"
        assert sum(len(list((logs / node).glob("*/attempt_0/*/stderr.log"))) for node in ("n1", "n2")) == 3
        assert all((logs / node).is_dir() for node in ("n1", "n2"))
    assert model_bytes(folder / "algorithm.K=2") == model_in_one_process(tmp_path, "experiment=tiny", "algorithm.K=2")
