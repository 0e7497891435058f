"""What is read of the host: where it can listen."""

import os
import re
import socket
from pathlib import Path

from llcg_dist.config.compose import load_config
from llcg_dist.doctor.findings import ERROR
from llcg_dist.doctor.host import TESTED_VERSIONS, cpu_bfloat16, listen_failure, read_ahead, this_host
from llcg_dist.doctor.host_rules import check_host
from tests.helpers.doctor_facts import levels
from tests.helpers.host_files import host_files


def test_bfloat16_is_a_flag_of_the_cpu(tmp_path: Path) -> None:
    flags = "flags : fpu avx512f {}\n"
    assert cpu_bfloat16(host_files(tmp_path, {"proc/cpuinfo": flags.format("avx512_bf16 amx_tile")})) == "avx512_bf16"
    assert cpu_bfloat16(host_files(tmp_path, {"proc/cpuinfo": flags.format("avx512_bf16 amx_bf16")})) == "amx_bf16"
    assert cpu_bfloat16(host_files(tmp_path, {"proc/cpuinfo": flags.format("avx512_bf16ish")})) is None


def test_how_far_the_kernel_reads_ahead(tmp_path: Path) -> None:
    device = tmp_path.stat().st_dev
    name = f"sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb"
    assert read_ahead(tmp_path, host_files(tmp_path / "host", {name: "8192\n"})) == 8 << 20
    assert read_ahead(tmp_path, tmp_path) == 0


def test_this_host_is_fit_for_its_own_tests() -> None:
    here = this_host()
    assert 0 < here.memory_free <= here.memory_total
    assert here.interfaces["lo"] == "127.0.0.1"
    assert ERROR not in levels(check_host(here, load_config([]).cluster, ranks=5))


def test_a_port_opens_on_an_address_of_this_host_and_on_no_other() -> None:
    assert listen_failure("127.0.0.1") is None
    assert listen_failure("192.0.2.123") is not None
    with socket.socket() as taken:  # a port in use is no obstacle: any other will do
        taken.bind(("127.0.0.1", 0))
        assert listen_failure("127.0.0.1") is None


def test_the_tested_versions_are_the_pinned_ones() -> None:
    pins = (Path(__file__).parents[3] / "constraints.txt").read_text()
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)$", pins, re.MULTILINE))
    assert {name: pinned[name] for name in TESTED_VERSIONS if name != "python"} == {
        k: v for k, v in TESTED_VERSIONS.items() if k != "python"
    }
