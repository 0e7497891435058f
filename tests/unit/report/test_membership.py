"""The strip of a run that went on without a machine."""

from pathlib import Path

import pytest

from llcg_dist.report.membership import membership_figures
from tests.helpers.run_records import study_of, write_run


def test_a_run_that_lost_nobody_has_no_strip(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [0.5, 0.6])
    assert membership_figures(study_of(tmp_path)) == []


def test_every_part_has_a_state_in_every_round(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [0.5, 0.6], row={"absent": [0, 1], "stood_in": [1]}, num_machines=3)
    (figure,) = membership_figures(study_of(tmp_path))
    states = ["absent", "stood in for by the server", "took part"]
    assert [(cell["round"], cell["part"], cell["state"]) for cell in figure.data] == [
        (round_, part, state) for round_ in (1, 2) for part, state in enumerate(states)
    ]


def test_late_machines_are_shown_unless_they_are_stood_in_for(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [0.5], row={"late": {"0": 1, "2": 1}, "stood_in": [2]}, num_machines=3)
    (figure,) = membership_figures(study_of(tmp_path))
    assert [cell["state"] for cell in figure.data] == ["late", "took part", "stood in for by the server"]


@pytest.mark.parametrize("absent", ["1", 1, {"1": 2}, None])
def test_what_is_no_list_has_no_parts(tmp_path: Path, absent: object) -> None:
    write_run(tmp_path / "a", [0.5], row={"absent": absent, "late": [1]})
    assert membership_figures(study_of(tmp_path)) == []
