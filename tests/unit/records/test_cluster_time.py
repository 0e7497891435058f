"""What rounds wait for evaluations beside them, against a queue that is simulated event by event."""

from collections.abc import Sequence

import hypothesis.strategies as st
import pytest
from hypothesis import given

from llcg_dist.records.cluster_time import EvaluatorQueue, round_seconds

ROUNDS = st.lists(st.tuples(st.floats(0.01, 5), st.sampled_from([0.0, 0.1, 1.0, 7.0])), min_size=1, max_size=12)


def simulated(rounds: Sequence[tuple[float, float]], length: int) -> list[float]:
    """When each round is over, and has handed its model in; the last: when everything is."""
    clock, over, waiting, free = 0.0, [], list[float](), 0.0
    for seconds, evaluating in rounds:
        clock += seconds
        if evaluating:
            waiting = [end for end in waiting if end > clock]
            if len(waiting) == length:
                clock = waiting.pop(0)
            free = max(free, clock) + evaluating
            waiting.append(free)
        over.append(clock)
    over[-1] = max(over[-1], free)
    return over


@given(ROUNDS, st.integers(1, 3), st.integers(0, 11))
def test_rounds_wait_only_for_a_full_queue(rounds: list[tuple[float, float]], length: int, resumed: int) -> None:
    queue, rows = EvaluatorQueue(length), list[dict[str, float]]()
    for position, (seconds, evaluating) in enumerate(rounds):
        if position == resumed:  # from the rows alone
            queue = EvaluatorQueue(length, rows)
        took = queue.round(seconds, evaluating, position == len(rounds) - 1)
        assert took >= seconds
        rows.append({"cluster_seconds": took, "cpu_evaluate": evaluating})
    over = [sum(row["cluster_seconds"] for row in rows[: count + 1]) for count in range(len(rows))]
    assert over == pytest.approx(simulated(rounds, length))


def test_short_evaluations_cost_the_last_round_alone() -> None:
    queue = EvaluatorQueue(2)
    assert [queue.round(1.0, 0.5, last) for last in (False, False, True)] == pytest.approx([1.0, 1.0, 1.5])


def test_long_evaluations_set_the_pace() -> None:
    queue = EvaluatorQueue(2)
    assert [queue.round(1.0, 3.0, last) for last in (False, False, False, False, True)] == pytest.approx(
        [1.0, 1.0, 2.0, 3.0, 9.0]
    )


def test_a_round_by_its_row() -> None:
    """Machines of 1 and 3 s beside 2 s of the server, half a second of correction after; 1 MB takes 8 s at 1 Mbit/s."""
    row = {"cpu_local_by_part": [1.0, None, 3.0], "cpu_correct": 0.5, "cpu_correct_beside": 2.0}
    row |= {
        "bytes_up": 400_000,
        "bytes_down": 400_000,
        "gradient_bytes": 0,
        "control_bytes": 0,
        "feature_bytes": 400_000,
    }
    assert round_seconds(row, alone=False) == 3.5
    assert round_seconds(row | {"cpu_correct_beside": 5.0}, alone=False) == 5.5
    assert round_seconds(row, alone=False, link_mbit=1.0) == pytest.approx(3.5 + 8.0)
    assert round_seconds(row, alone=True, link_mbit=1.0) == 4.5
    assert round_seconds(row | {"cpu_local_by_part": []}, alone=False) == 2.5  # nobody but the server
