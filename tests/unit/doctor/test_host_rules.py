"""What the rules make of a host: versions, interfaces, devices, cores, processes."""

import pytest

from llcg_dist.config.cluster import Backend, ClusterConfig, Device
from llcg_dist.config.compose import load_config
from llcg_dist.doctor.findings import ERROR, OK, WARN, Finding
from llcg_dist.doctor.host import TESTED_VERSIONS
from llcg_dist.doctor.host_rules import (
    check_cores,
    check_devices,
    check_host,
    check_precision,
    check_processes,
    check_server_threads,
    check_versions,
)
from tests.helpers.doctor_facts import host, levels, only


def test_versions() -> None:
    exact: dict[str, str | None] = {**TESTED_VERSIONS, "python": "3.12.1"}
    assert levels(check_versions(exact | {"torch": "2.13.0+cpu", "python": "3.11.9"})) == {OK}
    assert "pymetis 2.1.0" in only(check_versions(exact | {"pymetis": "2.1.0"}), WARN).what
    assert "python 3.1.1" in only(check_versions(exact | {"python": "3.1.1"}), WARN).what
    assert "pymetis" in only(check_versions(exact | {"pymetis": None}), ERROR).what


def test_an_interface_that_is_not_there_is_an_error_that_lists_those_that_are() -> None:
    finding = only(check_host(host(wanted_interface="eth7"), ClusterConfig(), ranks=3), ERROR)
    assert "eth7" in finding.what
    assert "eth0 10.0.0.5" in finding.advice


def test_no_port_is_an_error_unless_there_is_one_process() -> None:
    deaf = host(listen_failure="Cannot assign requested address")
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
    (finding,) = check_devices(gpus, ClusterConfig(device=Device(device), backend=Backend(backend)), ranks)
    assert finding.level == level
    assert finding.advice or level == OK


def test_more_threads_than_cores_are_a_warning_and_more_ranks_are_not() -> None:
    assert levels(check_cores(cores=2, threads=1, ranks=9)) == {OK}
    assert levels(check_cores(cores=8, threads=2, ranks=4)) == {OK}
    assert "cluster.threads=1" in only(check_cores(cores=8, threads=2, ranks=5), WARN).advice


def test_the_number_of_processes_under_a_launcher() -> None:
    assert levels(check_processes(None, 5)) == levels(check_processes("5", 5)) == {OK}
    assert "WORLD_SIZE=4" in only(check_processes("4", 5), ERROR).what


def test_bfloat16_is_recommended_where_the_device_has_it_and_warned_of_where_not() -> None:
    plain, rounded = load_config([]), load_config(["train.precision=bfloat16"])
    (advised,) = check_precision(host(), plain)
    assert advised.level == OK
    assert "avx512_bf16: train.precision=bfloat16" in advised.advice
    assert check_precision(host(), rounded)[0].advice == ""
    old = host(cpu_bfloat16=None)
    assert (check_precision(old, plain)[0].level, check_precision(old, plain)[0].advice) == (OK, "")
    assert "train.precision=float32" in only(check_precision(old, rounded), WARN).advice


def test_bfloat16_is_a_matter_of_the_device_that_computes() -> None:
    mixed, rounded = host(gpus=1), load_config(["train.precision=bfloat16"])
    assert "GPU" in only(check_precision(mixed, rounded), WARN).what
    on_cpu = load_config(["train.precision=bfloat16", "cluster.device=cpu"])
    assert levels(check_precision(mixed, on_cpu)) == {OK}
    assert (
        "the GPU has tensor cores"
        in check_precision(host(gpus=1, gpu_bfloat16="tensor cores"), load_config([]))[0].advice
    )


def test_threads_of_the_server_that_the_machines_leave_no_cores_for() -> None:
    def found(asked: int | str, ranks: int, threads: int = 1) -> list[Finding]:
        return check_server_threads(4, ClusterConfig(server_threads=asked, threads=threads), ranks)

    assert found("auto", ranks=9) == found(2, ranks=3) == found(1, ranks=9) == found(4, ranks=1) == []
    assert "cluster.server_threads=auto" in only(found(3, ranks=3), WARN).advice
    what = only(found(3, ranks=2, threads=2), WARN).what
    assert what.endswith("beside 1 machine(s) with 2 thread(s) each on 4 core(s)")
