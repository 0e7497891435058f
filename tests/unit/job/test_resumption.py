"""From which round a run goes on: the newest that all have, else the server's, and never silently from the first."""

from pathlib import Path
from typing import Any

import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.errors import UserError
from llcg_dist.job.resumption import choose_round, refuse_to_start_over, starts_over
from llcg_dist.records.starts import record_start

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


def test_who_was_gone_is_asked_once_a_round() -> None:
    """A checkpoint of the server is read for it."""
    asked = list[int]()

    def absent(round_: int) -> list[int]:
        asked.append(round_)
        return [3]

    assert choose_round([1, 2], [[1, 2]] * 16, recorded(2), absent) == (2, [3])
    assert asked == [1, 2]


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


def test_a_restart_of_a_fresh_job_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the same agent, or by SLURM; the same command in another shell starts over again."""
    fresh = load_config(["resume=fresh"])
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    monkeypatch.delenv("SLURM_RESTART_COUNT", raising=False)
    assert not starts_over(load_config([]), tmp_path)
    assert starts_over(fresh, tmp_path)
    record_start(tmp_path, None, 0)
    assert starts_over(fresh, tmp_path)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job")
    assert starts_over(fresh, tmp_path)
    record_start(tmp_path, None, 0)
    assert not starts_over(fresh, tmp_path)
    monkeypatch.delenv("TORCHELASTIC_RUN_ID")
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    record_start(tmp_path, None, 0)
    assert starts_over(fresh, tmp_path)  # typed again within one allocation
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    assert not starts_over(fresh, tmp_path)
    monkeypatch.setenv("SLURM_JOB_ID", "18")
    assert starts_over(fresh, tmp_path)
