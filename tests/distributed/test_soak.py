"""Many short rounds over real processes: nothing grows."""

import contextlib
import time
from pathlib import Path

import pytest

from tests.helpers.jobs import finish, ranks_of, start_llcg
from tests.helpers.run_files import rows


def rss_and_files(pid: int) -> tuple[int, int]:
    status = Path(f"/proc/{pid}/status").read_text()
    rss_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    return rss_kb, len(list(Path(f"/proc/{pid}/fd").iterdir()))


@pytest.mark.alone
@pytest.mark.parametrize("num_rounds", [200, pytest.param(2000, marks=pytest.mark.full)])
def test_memory_and_files_stay_flat(tmp_path: Path, num_rounds: int) -> None:
    settings = ["experiment=tiny", f"num_rounds={num_rounds}", f"partition.root={tmp_path}/parts"]
    job = start_llcg("train", *settings, f"run_dir={tmp_path}/run")
    metrics = tmp_path / "run" / "metrics.jsonl"
    samples: dict[int, list[tuple[int, int, int]]] = {}
    while job.poll() is None:
        time.sleep(0.05)
        done = metrics.read_bytes().count(b"\n") if metrics.exists() else 0
        if done < num_rounds // 4 or done > 0.9 * num_rounds:  # warming up, or soon going home
            continue
        for rank, pid in ranks_of(job).items():
            with contextlib.suppress(OSError):  # it may end meanwhile
                samples.setdefault(rank, []).append((done, *rss_and_files(pid)))
    outcome = finish(job)
    assert outcome.code == 0, outcome.err
    assert len(rows(tmp_path / "run")) == num_rounds
    assert set(samples) == {0, 1, 2}
    for rank, taken in samples.items():
        assert len(taken) >= 3, f"rank {rank} was looked at {len(taken)} times only"
        early, late = taken[0], taken[-1]
        assert late[1] <= 1.05 * early[1], f"rank {rank}: {early[1]} kB after round {early[0]}, {late[1]} kB later"
        assert max(files for _, _, files in taken) - min(files for _, _, files in taken) <= 2
