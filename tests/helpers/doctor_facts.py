"""Facts that rules are tried on: a sound manifest and a sound host, to be changed one thing at a time."""

import dataclasses
from typing import Any

from llcg_dist.doctor.findings import Finding
from llcg_dist.doctor.host import TESTED_VERSIONS, Host

SOUND_HOST = Host(
    memory_total=64_000_000_000,
    memory_free=60_000_000_000,
    cores=8,
    gpus=0,
    versions={**TESTED_VERSIONS, "python": "3.11.9"},
    interfaces={"lo": "127.0.0.1", "eth0": "10.0.0.5"},
    wanted_interface=None,
    address="127.0.0.1",
    listen_failure=None,
    cpu_bfloat16="avx512_bf16",
    gpu_bfloat16=None,
)


def host(**changes: Any) -> Host:
    return dataclasses.replace(SOUND_HOST, **changes)


def manifest(num_parts: int = 2, **of_part_0: Any) -> dict[str, Any]:
    part = {"nodes": 100, "edges": 500, "cut_edges": 50, "train_nodes": 40, "label_counts": [50, 50], "bytes": 9_000}
    parts = [dict(part) for _ in range(num_parts)]
    parts[0] |= of_part_0
    return {
        "num_parts": num_parts,
        "num_edges": 1_050,
        "cut_edges": 50,
        "partitioner": "metis",
        "label_counts": [100, 100],
        "parts": parts,
    }


def levels(findings: list[Finding]) -> set[str]:
    return {finding.level for finding in findings}


def only(findings: list[Finding], level: str) -> Finding:
    """The one finding of this level; all that is not ok says what to do."""
    found = [finding for finding in findings if finding.level == level]
    assert len(found) == 1, findings
    assert found[0].advice
    return found[0]
