"""The sizes of published graphs."""

import pytest

from llcg_dist.data.datasets.published import Statistics, check_statistics


def test_published_figures_raise_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    check_statistics("ogbn-arxiv", Statistics(169_343, 1_166_243, 128, 40))
    assert caplog.records == []
    check_statistics("ogbn-arxiv", Statistics(169_343, 1_166_243, 12, 40))
    assert caplog.messages == ["dataset ogbn-arxiv is not the published graph: 12 features instead of 128"]
