"""Curves as text."""

from llcg_dist.cli.watch.chart import bar, chart


def test_columns_rise_from_the_lowest_to_the_highest_value() -> None:
    assert chart([0.0, 1.0], 10, 2) == [" █", "▁█"]
    assert chart([1.0, 3.0, 2.0], 10, 1) == ["▁█▅"]
    assert chart([5.0, 5.0], 10, 1) == ["▁▁"]
    assert chart([], 10, 3) == []


def test_more_rounds_than_columns_are_merged_up_to_the_last() -> None:
    (line,) = chart([float(i) for i in range(100)], 10, 1)
    assert len(line) == 10
    assert line[-1] == "█"


def test_a_bar_stays_within_its_width() -> None:
    assert [bar(share, 4) for share in (0, 0.5, 1, 7)] == ["", "██", "████", "████"]
