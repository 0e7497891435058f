"""Memory is what the host has, or what the control groups of the process, or its own limit, allow."""

import subprocess
import sys
from pathlib import Path

from llcg_dist.data.host_memory import memory
from tests.helpers.host_files import host_files

GB = 1 << 30


MEMINFO = {"proc/meminfo": f"MemTotal: {64 * 1024**2} kB\nMemFree: 1 kB\nMemAvailable: {60 * 1024**2} kB\n"}


def test_memory_is_the_hosts_where_no_group_limits_it(tmp_path: Path) -> None:
    assert memory(host_files(tmp_path, MEMINFO)) == (64 * GB, 60 * GB)
    unlimited = {"proc/self/cgroup": "0::/job\n", "sys/fs/cgroup/job/memory.max": "max\n"}
    assert memory(host_files(tmp_path, unlimited)) == (64 * GB, 60 * GB)


def test_a_control_group_of_version_2_limits_memory_and_cached_files_are_free(tmp_path: Path) -> None:
    group = {
        "proc/self/cgroup": "0::/user/job\n",
        "sys/fs/cgroup/user/memory.max": str(8 * GB),  # the limit of the group around
        "sys/fs/cgroup/user/memory.current": str(3 * GB),
        "sys/fs/cgroup/user/memory.stat": f"anon 5\ninactive_file {2 * GB}\n",
        "sys/fs/cgroup/user/job/memory.max": "max",
    }
    assert memory(host_files(tmp_path, MEMINFO | group)) == (8 * GB, 7 * GB)


def test_a_control_group_of_version_1_limits_memory(tmp_path: Path) -> None:
    group = {
        "proc/self/cgroup": "5:devices:/\n4:memory:/job\n0::/\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "5",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": str(4 * GB),
        "sys/fs/cgroup/memory/job/memory.usage_in_bytes": str(5 * GB),
    }
    assert memory(host_files(tmp_path, MEMINFO | group)) == (4 * GB, 0)


def test_a_process_that_may_hold_less_has_less() -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30)); "
        "from llcg_dist.data.host_memory import memory; print(*memory())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    total, free = map(int, out.split())
    assert total == GB
    assert 0 < free < GB  # less what Python holds
