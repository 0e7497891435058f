"""Every message is counted, and those that must not cross are refused."""

import json
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.comm.ledger import (
    CONTROL_BYTES_LIMIT,
    ROW_NUMBERS,
    ROWS,
    CountedMessage,
    Direction,
    Kind,
    Ledger,
    Phase,
    Traffic,
)
from llcg_dist.errors import ProtocolError

ALL = frozenset(Kind)
NOTHING = Traffic(0, 0, 0, 0, 0, 0)


def message(kind: Kind, direction: Direction, size: int, phase: Phase = Phase.ROUND) -> CountedMessage:
    """`size` bytes."""
    return CountedMessage.of(torch.zeros(size, dtype=torch.uint8), kind, direction, phase)


def test_a_message_has_its_tensors_size() -> None:
    found = CountedMessage.of(torch.zeros(3, 4, dtype=torch.float64), Kind.CONTROL, Direction.UP)
    assert found == CountedMessage(Kind.CONTROL, Direction.UP, "float64", 12, 96, Phase.ROUND)


def test_a_round_by_hand() -> None:
    """Four machines: 100 bytes down and up, 32 of control, features and gradients both ways."""
    ledger = Ledger(ALL)
    ledger.count(message(Kind.PARAMETERS, Direction.DOWN, 100), 4)
    ledger.count(message(Kind.PARAMETERS, Direction.UP, 100), 4)
    ledger.count(message(Kind.CONTROL, Direction.UP, 32), 4)
    ledger.count(message(Kind.FEATURES, Direction.UP, 10), 4)
    ledger.count(message(Kind.FEATURES, Direction.DOWN, 7), 2)
    ledger.count(message(Kind.GRADIENTS, Direction.UP, 5), 3)
    assert ledger.end_round() == Traffic(
        bytes_up=400, bytes_down=400, feature_bytes=54, gradient_bytes=15, control_bytes=128, exchanges=1
    )
    assert ledger.end_round() == NOTHING
    assert ledger.total_bytes() == 400 + 400 + 54 + 15 + 128


def test_exchanges_are_the_servers_answers() -> None:
    ledger = Ledger(ALL)
    for _ in range(16):
        ledger.count(message(Kind.GRADIENTS, Direction.UP, 8), 4)
        ledger.count(message(Kind.GRADIENTS, Direction.DOWN, 8), 4)
    ledger.count(message(Kind.PARAMETERS, Direction.DOWN, 8), 4)
    ledger.count(message(Kind.FEATURES, Direction.DOWN, 8), 4)
    ledger.count(message(Kind.CONTROL, Direction.DOWN, 8), 4)
    assert ledger.end_round().exchanges == 16  # the model that opened the round is no answer to a step
    ledger.count(message(Kind.PARAMETERS, Direction.DOWN, 8), 4)
    assert ledger.end_round().exchanges == 1


@pytest.mark.parametrize("phase", Phase)
def test_kinds_that_are_not_allowed_are_refused_and_not_counted(phase: Phase) -> None:
    ledger = Ledger(frozenset({Kind.PARAMETERS}))
    for kind in (Kind.FEATURES, Kind.GRADIENTS):
        with pytest.raises(ProtocolError, match=f"{kind} must not cross.*allowed: control, parameters"):
            ledger.count(message(kind, Direction.UP, 8, phase), 1)
    assert ledger.total_bytes() == 0
    assert ledger.as_json()["messages"] == []
    ledger.count(message(Kind.CONTROL, Direction.UP, 8, phase), 1)  # control always may


def test_control_is_limited_per_machine_and_round() -> None:
    ledger = Ledger(frozenset({Kind.PARAMETERS}))
    assert CONTROL_BYTES_LIMIT == 4096
    for _ in range(3):
        ledger.count(message(Kind.CONTROL, Direction.UP, 4000), 100)  # 4 KiB each, however many machines
        ledger.count(message(Kind.CONTROL, Direction.DOWN, 96), 100)
        assert ledger.end_round().control_bytes == 409_600
    ledger.count(message(Kind.CONTROL, Direction.UP, 4096), 1)
    with pytest.raises(ProtocolError, match="4096 control bytes per machine and round"):
        ledger.count(message(Kind.CONTROL, Direction.DOWN, 1), 1)


def test_other_kinds_are_not_limited() -> None:
    ledger = Ledger(frozenset({Kind.PARAMETERS}))
    ledger.count(message(Kind.PARAMETERS, Direction.UP, 10**6), 1)
    assert ledger.end_round().bytes_up == 10**6


def test_the_handshake_is_counted_apart_from_the_rounds() -> None:
    ledger = Ledger(frozenset({Kind.PARAMETERS}))
    ledger.count(message(Kind.CONTROL, Direction.UP, 10**5, Phase.HANDSHAKE), 4)
    ledger.count(message(Kind.CONTROL, Direction.UP, 4096), 4)
    assert ledger.end_round() == Traffic(0, 0, 0, 0, 4 * 4096, 0)
    assert ledger.total_bytes() == 4 * (10**5 + 4096)


def test_wire_json_by_hand() -> None:
    ledger = Ledger(frozenset({Kind.PARAMETERS}))
    theta = torch.zeros(25)
    for _ in range(3):
        ledger.count(CountedMessage.of(theta, Kind.PARAMETERS, Direction.UP), 2)
        ledger.end_round()
    ledger.count(CountedMessage.of(torch.zeros(1, dtype=torch.int64), Kind.CONTROL, Direction.UP, Phase.HANDSHAKE), 2)
    rows: list[dict[str, Any]] = [
        {"kind": "parameters", "direction": "up", "phase": "round", "dtype": "float32"}
        | {"elements": 25, "count": 6, "bytes": 600},
        {"kind": "control", "direction": "up", "phase": "handshake", "dtype": "int64"}
        | {"elements": 1, "count": 2, "bytes": 16},
    ]
    by_kind = {"parameters": 600, "gradients": 0, "features": 0, "control": 16, "sealing": 0}
    in_detail = {"parameters": {"up": 600}, "gradients": {}, "features": {}, "control": {"up": 16}, "sealing": {}}
    assert ledger.as_json() == {
        "messages": rows,
        "bytes_by_kind": by_kind,
        "bytes_in_detail": in_detail,
        "total_bytes": 616,
    }


def test_fetched_features_are_told_apart_from_their_numbers() -> None:
    ledger = Ledger(ALL)
    for _ in range(2):
        ledger.count_features(ROW_NUMBERS, 6, 80)
        ledger.count_features(ROWS, 3, 1000)
        found = ledger.end_round()
        assert (found.feature_bytes, found.feature_id_bytes, found.feature_row_bytes) == (1080, 80, 1000)
    assert ledger.end_round() == NOTHING
    assert ledger.as_json()["bytes_in_detail"]["features"] == {"row numbers": 160, "rows": 2000}


def test_a_run_that_goes_on_adds_to_its_earlier_counts() -> None:
    earlier = Ledger(ALL)
    earlier.count(message(Kind.PARAMETERS, Direction.UP, 100), 4)
    earlier.count(message(Kind.CONTROL, Direction.UP, 10, Phase.HANDSHAKE), 4)
    earlier.count(message(Kind.CONTROL, Direction.DOWN, 0), 4)
    later = Ledger(ALL)
    later.restore(json.loads(json.dumps(earlier.as_json()["messages"])))
    assert later.as_json() == earlier.as_json()
    assert later.end_round() == NOTHING
    assert later.since_start() == (0, 0)
    later.count(message(Kind.PARAMETERS, Direction.UP, 100), 4)
    assert later.since_start() == (4, 400)
    assert later.as_json()["messages"][0]["count"] == 8
    assert later.total_bytes() == 800 + 40


def test_counts_go_beyond_64_bits() -> None:
    ledger = Ledger(frozenset({Kind.PARAMETERS}))
    ledger.count(CountedMessage(Kind.PARAMETERS, Direction.UP, "float32", 2**60, 2**62), 2**10)
    assert ledger.end_round().bytes_up == ledger.total_bytes() == 2**72


def test_features_between_machines() -> None:
    ledger = Ledger(frozenset({Kind.FEATURES}))
    ledger.count_features("row numbers", 6, 50)
    ledger.count_features("rows", 3, 1000)
    ledger.count_features("rows", 3, 24)
    assert ledger.end_round() == Traffic(0, 0, 1074, 0, 0, 0, feature_id_bytes=50, feature_row_bytes=1024)
    about = {"kind": "features", "direction": "between", "phase": "round", "elements": None}
    assert ledger.as_json()["messages"] == [
        about | {"dtype": "row numbers", "count": 6, "bytes": 50},
        about | {"dtype": "rows", "count": 6, "bytes": 1024},
    ]
    again = Ledger(frozenset({Kind.FEATURES}))
    again.restore(json.loads(json.dumps(ledger.as_json()["messages"])))
    assert again.as_json() == ledger.as_json()


def test_features_cross_only_where_the_method_allows() -> None:
    ledger = Ledger(frozenset({Kind.PARAMETERS}))
    with pytest.raises(ProtocolError, match="features must not cross"):
        ledger.count_features("rows", 0, 0)


events = st.tuples(
    st.sampled_from(Kind),
    st.sampled_from([Direction.UP, Direction.DOWN]),
    st.sampled_from(Phase),
    st.integers(0, 100),
    st.integers(1, 9),
)


@given(st.lists(st.lists(events, max_size=8), max_size=4))
def test_rounds_add_up_to_the_total(rounds: list[list[tuple[Kind, Direction, Phase, int, int]]]) -> None:
    ledger = Ledger(ALL)
    in_rounds = 0
    for events_of_round in rounds:
        for kind, direction, phase, size, machines in events_of_round:
            ledger.count(message(kind, direction, size, phase), machines)
        traffic = ledger.end_round()
        in_rounds += traffic.bytes_up + traffic.bytes_down
        in_rounds += traffic.feature_bytes + traffic.gradient_bytes + traffic.control_bytes
        in_rounds += traffic.sealing_bytes
    everything = [event for events_of_round in rounds for event in events_of_round]
    handshake = sum(size * machines for _, _, phase, size, machines in everything if phase is Phase.HANDSHAKE)
    assert in_rounds + handshake == ledger.total_bytes() == sum(e[3] * e[4] for e in everything)
    assert sum(ledger.as_json()["bytes_by_kind"].values()) == ledger.total_bytes()


def test_a_kind_can_be_allowed_for_a_moment() -> None:
    ledger = Ledger(frozenset({Kind.PARAMETERS}))
    gradient = CountedMessage.of(torch.zeros(3), Kind.GRADIENTS, Direction.UP)
    with ledger.also_allowing(frozenset({Kind.GRADIENTS})):
        ledger.count(gradient, machines=2)
    with pytest.raises(ProtocolError, match="gradients must not cross"):
        ledger.count(gradient, machines=2)
    assert ledger.end_round().gradient_bytes == 24


def test_what_is_enclosed_in_another_message_is_counted_and_adds_none_on_the_wire() -> None:
    ledger = Ledger(frozenset({Kind.PARAMETERS}))
    model, stats = torch.zeros(5, dtype=torch.bfloat16), torch.zeros(3, dtype=torch.float64)
    ledger.count(CountedMessage.of(model, Kind.PARAMETERS, Direction.UP), machines=4)
    ledger.count(CountedMessage.of(stats, Kind.CONTROL, Direction.UP), machines=4, enclosed=4)
    assert ledger.since_start() == (4, 4 * (10 + 24))
    rows = {row["kind"]: (row["dtype"], row["elements"], row["bytes"]) for row in ledger.as_json()["messages"]}
    assert rows == {"parameters": ("bfloat16", 5, 40), "control": ("float64", 3, 96)}


def test_seals_are_a_kind_of_their_own_inside_the_messages_that_they_close() -> None:
    ledger = Ledger(frozenset({Kind.PARAMETERS}))
    for direction in (Direction.DOWN, Direction.UP):
        ledger.count(CountedMessage.of(torch.zeros(25), Kind.PARAMETERS, direction), 2)
        ledger.count_seals(80, 2, direction)
    ledger.count_seals(80, 6, Direction.BETWEEN)
    ledger.count_seals(80, 2, Direction.UP, Phase.HANDSHAKE)
    ledger.count_seals(0, 2, Direction.UP)  # not sealed
    found = ledger.end_round()
    assert (found.bytes_up, found.bytes_down, found.control_bytes, found.sealing_bytes) == (200, 200, 0, 80 * 10)
    assert ledger.since_start() == (4, 400 + 80 * 12)
    assert ledger.as_json()["bytes_in_detail"]["sealing"] == {"down": 160, "up": 320, "between": 480}


def test_seals_share_the_budget_of_control() -> None:
    ledger = Ledger(frozenset())
    for _ in range(51):
        ledger.count_seals(80, 3, Direction.UP)
    with pytest.raises(ProtocolError, match="more than 4096 control bytes"):
        ledger.count_seals(80, 3, Direction.UP)
