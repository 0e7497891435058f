"""The verdict of the wire audit: what the sockets carried against what the ledger counted, by hand."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llcg_dist.comm.audit import (
    CONNECT_BYTES,
    HEADER_BYTES,
    Reading,
    explain,
    recorded_verdict,
    verdict,
)
from llcg_dist.errors import UserError

# A server and two machines, each with two connections; twenty messages with 10,000 bytes in all.
COUNTED, MESSAGES = 10_000, 20
SERVER = Reading(
    sent=5000,
    received=5000,
    counted_received=5000,
    sent_again=0,
    connections=2,
    joining_bytes=10,
    joining_allowance=20,
    store_bytes=900,
    store_allowance=1000,
)
MACHINE = replace(SERVER, sent=2500, received=2500, counted_received=2500, store_bytes=400, store_allowance=500)


def audited(**changes: int) -> dict[str, Any]:
    """Changes are to the second machine's reading."""
    changed = {name: getattr(MACHINE, name) + more for name, more in changes.items()}
    return verdict([SERVER, MACHINE, replace(MACHINE, **changed)], COUNTED, MESSAGES)


def test_a_verdict_by_hand() -> None:
    found = audited(sent=100, received=100, sent_again=9)
    assert {key: value for key, value in found.items() if key != "ranks"} == {
        "passed": True,
        "ledger_bytes": 10_000,
        "messages": 20,
        "socket_bytes_sent": 10_100,
        "socket_bytes_received": 10_100,
        "socket_bytes_sent_again": 9,
        "difference": 100,
        "tolerance": 20 * 144 + 6 * 8,
        "joining_bytes": 30,
        "joining_allowance": 60,
        "store_bytes": 1700,
        "store_allowance": 2000,
        "connections": 6,
    }
    assert len(found["ranks"]) == 3
    assert explain(found).startswith("wire audit passed: the sockets sent 10,100 and received 10,100 bytes")


def test_headers_are_all_that_may_be_added() -> None:
    most = HEADER_BYTES * MESSAGES + CONNECT_BYTES * 6
    assert audited(sent=most, received=most)["passed"]
    assert audited()["passed"]
    for changes in (
        {"sent": most + 1, "received": most},
        {"sent": most, "received": most + 1},
        {"sent": -1},  # the ledger has what no socket carried
        {"received": -1},
        {"store_bytes": 301},
        {"joining_bytes": 31},
    ):
        assert not audited(**changes)["passed"], changes


def test_a_failure_says_how_much_and_where() -> None:
    line = explain(audited(sent=4000, received=4000))
    assert "failed: the sockets sent 14,000 and received 14,000 bytes, the ledger has 10,000" in line
    assert "rank 2, which received 4,000 bytes that were not counted" in line
    assert "store" not in line
    assert "at rank" not in explain(audited(store_bytes=1000))
    assert "the job's store moved 2,700 bytes afterwards, where" in explain(audited(store_bytes=1000))
    assert "the job's store moved 130 bytes while ranks joined, where" in explain(audited(joining_bytes=100))


def test_a_finished_run_keeps_its_verdict(tmp_path: Path) -> None:
    for content in ("", "[]", "{}", '{"audit": null}', '{"audit": {"passed": true}}'):
        (tmp_path / "wire.json").write_text(content)
        with pytest.raises(UserError, match="a finished run that was not audited"):
            recorded_verdict(tmp_path)
    (tmp_path / "wire.json").write_text(json.dumps({"audit": audited(sent=4000)}))
    assert recorded_verdict(tmp_path) == audited(sent=4000)
