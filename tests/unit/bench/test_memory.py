"""What bench/memory.py sees of a process tree."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.confined import group_root
from bench.memory import Peak, watch

# A process that holds 100 MB in the second stage, in a child of it that says it is rank 3; shared pages count once.
CHILD = """
import os, sys, time
print("first", flush=True)
time.sleep(0.5)
print("second", flush=True)
time.sleep(0.5)  # a look that began in the first stage has ended
if os.fork() == 0:
    hold = "import time; x = b'1' * 100_000_000; time.sleep(1.5)"
    os.execve(sys.executable, [sys.executable, "-c", hold], {"RANK": "3"})
os.wait()
print("no stage", flush=True)
sys.exit(int(sys.argv[1]))
"""


def stage_of(line: str) -> str | None:
    return line if line in ("first", "second") else None


def test_stages_and_ranks() -> None:
    stages, lines = watch([sys.executable, "-c", CHILD, "0"], {}, stage_of)
    start, first, second = stages
    assert (start.name, first.name, second.name) == ("start", "first", "second")
    assert lines == ["first", "second", "no stage"]
    assert first.seconds >= 0.5
    assert second.seconds >= 2
    assert second.peak.total - first.peak.total >= 100e6
    assert 100e6 <= second.ranks[3].anonymous <= 150e6
    assert (start.ranks, first.ranks) == ({}, {})


# Ten megabytes of a file that has a name, and twenty of one that has none any more.
FILES = """
import mmap, os, sys, time
def mapped(name, size):
    with open(os.path.join(sys.argv[1], name), "w+b") as file:
        file.write(bytes(size))
        file.flush()
        return mmap.mmap(file.fileno(), size)
kept, removed = mapped("kept", 10 << 20), mapped("removed", 20 << 20)
os.unlink(os.path.join(sys.argv[1], "removed"))
print("first", flush=True)
time.sleep(1)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees what other processes have mapped")
def test_files_without_a_name_take_room(tmp_path: Path) -> None:
    _, first = watch([sys.executable, "-c", FILES, str(tmp_path)], {}, stage_of, tmp_path)[0]
    assert 30 << 20 <= first.disk <= 31 << 20


@pytest.mark.skipif(not os.access(group_root(), os.W_OK), reason="control groups want root")
@pytest.mark.parametrize(("megabytes", "code"), [(100, 0), (600, -9)])
def test_a_smaller_host_kills_what_does_not_fit(megabytes: int, code: int) -> None:
    held = f"import bench.confined; bench.confined.confine(0.3); x = b'1' * {megabytes * 10**6}"
    process = subprocess.Popen([sys.executable, "-c", held])
    assert process.wait(60) == code
    left = group_root() / f"llcg-{process.pid}"
    assert left.exists() == (code != 0)  # who is killed cannot leave
    if left.exists():
        left.rmdir()


def test_a_command_that_fails_is_named() -> None:
    with pytest.raises(SystemExit, match="ended with 3: .*no stage"):
        watch([sys.executable, "-c", CHILD, "3"], {}, stage_of)


def test_peaks_add_up_and_rise() -> None:
    peak = Peak(3, 2, 1) + Peak(1, 1, 0)
    assert peak == Peak(4, 3, 1)
    peak.raise_to(Peak(2, 5, 0))
    assert peak == Peak(4, 5, 1)


def test_the_environment_reaches_the_command() -> None:
    _, lines = watch([sys.executable, "-c", "import os; print(os.environ['SCALE'])"], {"SCALE": "1/4"}, stage_of)
    assert lines == ["1/4"]
    assert "SCALE" not in os.environ
