"""bench/peers/tables.py: which settings of a peer count, and what is claimed, by hand."""

import pytest
from bench.peers.tables import Result, better_settings, claims, markdown


def result(program: str, seconds: float, best: float = 0.96, kind: str = "ours", repeat: int = 0) -> Result:
    return Result(100, repeat, program, kind, best >= 0.95, seconds, best, 1234.5, 900.0)


@pytest.mark.parametrize(
    ("ours", "theirs", "better"),
    [
        ((40.0, 0.96), (30.0, 0.97), "theirs"),
        ((40.0, 0.96), (30.0, 0.90), "ours"),  # given up early is not sooner
        ((100.0, 0.60), (120.0, 0.85), "theirs"),  # neither is there: the one that came closer
    ],
)
def test_a_peer_gets_the_better_of_two_settings(
    ours: tuple[float, float], theirs: tuple[float, float], better: str
) -> None:
    found = [result("ddp", *ours), result("ddp", *theirs, kind="theirs"), result("llcg", 1.0)]
    assert better_settings(found, 100, "ddp") == [better]


def test_claims_compare_repeat_by_repeat_with_the_better_settings() -> None:
    llcg = [result("llcg", 10.0), result("llcg", 20.0, repeat=1)]
    slow = [result("distdgl", 500.0, 0.5), result("distdgl", 60.0, kind="theirs")]
    found = claims([*llcg, *slow, result("distdgl", 80.0, kind="theirs", repeat=1)])
    assert [(claim.found.low, claim.found.high, claim.at_least) for claim in found] == [(4.0, 6.0, 5.0)]


def test_a_method_that_is_not_there_itself_is_not_sooner() -> None:
    (claim,) = claims([result("llcg", 10.0, 0.5), result("distdgl", 60.0)])
    assert not claim.holds


def test_the_table_says_what_was_given_up() -> None:
    lines = markdown([result("ddp", 100.0, 0.602), result("llcg", 10.0)]).splitlines()
    assert (
        lines[2]
        == "| 100 | ddp | ours | 1 | 100 (100 to 100), given up at 60.2 % | 1,234 (1,234 to 1,234) | 900 (900 to 900) |"
    )
    assert "given up" not in lines[3]
