"""Columns that are added up."""

from llcg_dist.records.columns import sent_bytes


def test_every_kind_that_crosses_counts_once() -> None:
    row = {"bytes_up": 1, "bytes_down": 20, "gradient_bytes": 300, "feature_bytes": 4_000, "control_bytes": 50_000}
    assert sent_bytes(row | {"feature_id_bytes": 7, "feature_row_bytes": 7, "round": 9}) == 54_321
