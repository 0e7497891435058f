"""What loggers are given of a row about machines."""

from typing import Any

import pytest

from llcg_dist.records.loggers.base import Points

ROW: dict[str, Any] = {
    "round": 3,
    **dict.fromkeys(("bytes_up", "bytes_down", "feature_bytes", "gradient_bytes", "control_bytes"), 0),
}


@pytest.mark.parametrize(
    ("columns", "late"), [({"late": {"0": 3, "2": 1}}, 2), ({"answered_late": {"0": 3}}, 0), ({}, None)]
)
def test_machines_that_are_late_are_counted(columns: dict[str, Any], late: int | None) -> None:
    assert Points().add(ROW | columns).scalars.get("machines_late") == late
