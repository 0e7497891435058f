"""The rounds that a slow machine misses, and what they take; with numbers worked out by hand."""

import pytest
from studies.stragglers import late_rows, round_seconds, seconds_to


def test_a_machine_five_times_slower_misses_four_rounds_of_five() -> None:
    """Asked in round 2, at 50, it takes 50; rounds 2 to 5 end at 65, 75, 85, 95, and round 6 at 105."""
    rows = late_rows([10] * 8, slow=3, times=5, deadline=1.5)
    assert [row.get("late") for row in rows] == [None, *[{"3": 2}] * 5, {"3": 7}, {"3": 7}]
    assert [row.get("answered_late") for row in rows] == [None] * 6 + [{"3": 2}, None]


def test_a_machine_within_the_deadline_is_never_late() -> None:
    assert late_rows([4, 4], slow=0, times=1.4, deadline=1.5) == [{"round": 1}, {"round": 2}]


def test_the_time_of_a_round() -> None:
    row = {"round": 4, "cpu_local_by_part": [1.0, 1.2, 1.1], "cpu_correct": 0.5, "val_score": 0.8}
    assert round_seconds(row, slow=1, times=5) == pytest.approx(6.5)
    late = row | {"cpu_local_by_part": [1.0, None, 1.1], "late": {"1": 4}}
    assert round_seconds(late, slow=1, deadline=1.5) == pytest.approx(2.0), "the deadline: 1.5 times the median"
    still = late | {"late": {"1": 3}, "cpu_stand_in": 1.3}
    assert round_seconds(still, slow=1) == pytest.approx(1.8), "nobody waits, and the server stands in meanwhile"
    assert seconds_to([row, still], target=0.8, slow=0) == pytest.approx(5.5)
    assert seconds_to([row], target=0.9, slow=0) is None
