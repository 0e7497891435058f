"""The host: what is read of it, and what the rules make of it."""

import re
import socket
from pathlib import Path

import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import ClusterConfig
from llcg_dist.doctor.findings import ERROR, OK, WARN
from llcg_dist.doctor.host import TESTED, memory, this_host, why_not_listen
from llcg_dist.doctor.host_rules import check_cores, check_devices, check_host, check_processes, check_versions
from tests.helpers.doctor_facts import host, levels, only

GB = 1 << 30


def write(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


MEMINFO = {"proc/meminfo": f"MemTotal: {64 * 1024**2} kB\nMemFree: 1 kB\nMemAvailable: {60 * 1024**2} kB\n"}


def test_memory_is_the_hosts_where_no_group_limits_it(tmp_path: Path) -> None:
    assert memory(write(tmp_path, MEMINFO)) == (64 * GB, 60 * GB)
    unlimited = {"proc/self/cgroup": "0::/job\n", "sys/fs/cgroup/job/memory.max": "max\n"}
    assert memory(write(tmp_path, unlimited)) == (64 * GB, 60 * GB)


def test_a_control_group_of_version_2_limits_memory_and_cached_files_are_free(tmp_path: Path) -> None:
    group = {
        "proc/self/cgroup": "0::/user/job\n",
        "sys/fs/cgroup/user/memory.max": str(8 * GB),  # the limit of the group around
        "sys/fs/cgroup/user/memory.current": str(3 * GB),
        "sys/fs/cgroup/user/memory.stat": f"anon 5\ninactive_file {2 * GB}\n",
        "sys/fs/cgroup/user/job/memory.max": "max",
    }
    assert memory(write(tmp_path, MEMINFO | group)) == (8 * GB, 7 * GB)


def test_a_control_group_of_version_1_limits_memory(tmp_path: Path) -> None:
    group = {
        "proc/self/cgroup": "5:devices:/\n4:memory:/job\n0::/\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "5",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": str(4 * GB),
        "sys/fs/cgroup/memory/job/memory.usage_in_bytes": str(5 * GB),
    }
    assert memory(write(tmp_path, MEMINFO | group)) == (4 * GB, 0)


def test_this_host_is_fit_for_its_own_tests() -> None:
    here = this_host()
    assert 0 < here.memory_free <= here.memory_total
    assert here.interfaces["lo"] == "127.0.0.1"
    assert ERROR not in levels(check_host(here, load_config([]).cluster, ranks=5))


def test_a_port_opens_on_an_address_of_this_host_and_on_no_other() -> None:
    assert why_not_listen("127.0.0.1") is None
    assert why_not_listen("192.0.2.123") is not None
    with socket.socket() as taken:  # a port in use is no obstacle: any other will do
        taken.bind(("127.0.0.1", 0))
        assert why_not_listen("127.0.0.1") is None


def test_the_tested_versions_are_the_pinned_ones() -> None:
    pins = (Path(__file__).parents[3] / "constraints.txt").read_text()
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)$", pins, re.MULTILINE))
    assert {name: pinned[name] for name in TESTED if name != "python"} == {
        k: v for k, v in TESTED.items() if k != "python"
    }


def test_versions() -> None:
    exact: dict[str, str | None] = dict(TESTED)
    assert levels(check_versions(exact | {"torch": "2.13.0+cpu", "python": "3.11.9"})) == {OK}
    assert "dgl 2.1.0" in only(check_versions(exact | {"dgl": "2.1.0"}), WARN).what
    assert "python 3.1.1" in only(check_versions(exact | {"python": "3.1.1"}), WARN).what
    assert "dgl" in only(check_versions(exact | {"dgl": None}), ERROR).what


def test_an_interface_that_is_not_there_is_an_error_that_lists_those_that_are() -> None:
    finding = only(check_host(host(wanted_interface="eth7"), ClusterConfig(), ranks=3), ERROR)
    assert "eth7" in finding.what
    assert "eth0 10.0.0.5" in finding.advice


def test_no_port_is_an_error_unless_there_is_one_process() -> None:
    deaf = host(cannot_listen="Cannot assign requested address")
    assert "127.0.0.1" in only(check_host(deaf, ClusterConfig(), ranks=3), ERROR).what
    assert levels(check_host(deaf, ClusterConfig(), ranks=1)) == {OK}


@pytest.mark.parametrize(
    ("gpus", "device", "backend", "ranks", "level"),
    [
        (0, "auto", "auto", 5, OK),
        (0, "cuda", "auto", 5, ERROR),
        (0, "auto", "nccl", 5, ERROR),
        (0, "cuda", "loopback", 1, ERROR),
        (2, "cuda", "nccl", 5, ERROR),
        (5, "cpu", "nccl", 5, ERROR),
        (2, "auto", "auto", 5, OK),
        (5, "auto", "auto", 5, OK),
        (5, "cuda", "nccl", 5, OK),
        (2, "cpu", "gloo", 5, OK),
    ],
)
def test_devices(gpus: int, device: str, backend: str, ranks: int, level: str) -> None:
    (finding,) = check_devices(gpus, ClusterConfig(device=device, backend=backend), ranks)
    assert finding.level == level
    assert finding.advice or level == OK


def test_more_threads_than_cores_are_a_warning_and_more_ranks_are_not() -> None:
    assert levels(check_cores(cores=2, threads=1, ranks=9)) == {OK}
    assert levels(check_cores(cores=8, threads=2, ranks=4)) == {OK}
    assert "cluster.threads=1" in only(check_cores(cores=8, threads=2, ranks=5), WARN).advice


def test_the_number_of_processes_under_a_launcher() -> None:
    assert levels(check_processes(None, 5)) == levels(check_processes("5", 5)) == {OK}
    assert "WORLD_SIZE=4" in only(check_processes("4", 5), ERROR).what
