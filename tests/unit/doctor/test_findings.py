"""Findings and the numbers in them."""

from llcg_dist.doctor.findings import format_bytes


def test_sizes_are_read_easily() -> None:
    assert [format_bytes(n) for n in (12, 6_000, 310_000_000, 1_520_000_000)] == ["12 B", "6.0 KB", "310 MB", "1.5 GB"]
