"""From which round a run goes on: the newest that all have, else the server's, and never silently from the first."""

from pathlib import Path
from typing import Any

import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.errors import UserError
from llcg_dist.job.resumption import choose_round, refuse_to_start_over, starts_over

Rows = list[dict[str, Any]]


def recorded(count: int) -> Rows:
    """Rows as the server writes them: what row r says of checkpoints is from the end of round r."""
    return [{"round": r, "checkpoint_round": max(0, r - 1)} for r in range(1, count + 1)]


@pytest.mark.parametrize(
    ("server", "parts", "rows", "expected"),
    [
        ([2, 3], [[2, 3], [2, 3]], 3, (3, [])),
        ([2, 3], [[2, 3], [2]], 3, (2, [])),  # killed while the server was ahead: the round is repeated, exactly
        ([2, 3], [[3, 4], [2, 3]], 3, (3, [])),
        ([19, 20], [[19, 20], []], 20, (20, [1])),  # a folder is gone
        ([19, 20], [[], []], 20, (20, [0, 1])),
        ([20], [[20], [20], [18]], 20, (20, [2])),
        ([19], [[20], [19, 20]], 20, (19, [0])),  # the server's newest is damaged
        ([20], [[20], []], 20, (20, [1])),  # checkpoint.keep=1
        ([1], [[1], []], 1, (0, [])),  # killed in the first round that is saved: nothing was durable, nothing is lost
        ([1], [[1, 2], []], 1, (0, [])),
        ([1, 2, 3], [[], [1, 2, 3]], 3, (3, [0])),  # a disk that was never written to
        ([], [[1], [1]], 0, (0, [])),
        ([5], [], 5, (5, [])),
    ],
)
def test_the_newest_round_of_all_or_the_newest_of_the_server(
    server: list[int], parts: list[list[int]], rows: int, expected: tuple[int, list[int]]
) -> None:
    assert choose_round(server, parts, recorded(rows)) == expected


def test_a_first_checkpoint_that_all_had_is_not_given_up() -> None:
    """With checkpoint.every=50 the server has one file for 50 rounds; rows after it say that all had written theirs."""
    rows = [{"round": r, "checkpoint_round": 0} for r in range(1, 52)]
    assert choose_round([50], [[50], []], rows) == (50, [1])
    assert choose_round([50], [[50], []], rows[:50]) == (0, [])


@pytest.mark.parametrize(
    ("parts", "rows", "is_new", "refused"),
    [
        ([[], []], 0, True, False),
        ([[1], [1, 2]], 1, False, False),  # killed in the first rounds, before the server had saved any
        ([[19, 20], [20]], 20, False, True),
        ([[], []], 20, False, True),
        ([[19, 20], [20]], 0, True, True),  # the run directory is gone, the machines' folders are not
        ([[3], [3]], 0, False, True),
    ],
)
def test_a_run_that_had_checkpoints_does_not_start_over(
    tmp_path: Path, parts: list[list[int]], rows: int, is_new: bool, refused: bool
) -> None:
    config = load_config([])
    if not refused:
        refuse_to_start_over(config, tmp_path, parts, recorded(rows), is_new)
        return
    with pytest.raises(UserError, match=r"checkpoints are gone or damaged; .*resume=fresh$"):
        refuse_to_start_over(config, tmp_path, parts, recorded(rows), is_new)


def test_a_restart_of_a_fresh_job_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = load_config(["resume=fresh"])
    assert starts_over(fresh)
    assert not starts_over(load_config([]))
    for variable in ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"):
        with monkeypatch.context() as changed:
            changed.setenv(variable, "0")
            assert starts_over(fresh)
            changed.setenv(variable, "1")
            assert not starts_over(fresh)
