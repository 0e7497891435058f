"""Users' own classes by dotted path."""

import pytest

from llcg_dist.config.targets import importable_path, resolve
from llcg_dist.errors import UserError


def test_what_cannot_be_imported_is_one_line_and_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Hydra logs the same over several lines, which stood above the error."""
    with pytest.raises(UserError, match="cannot be imported") as error:
        resolve("algorithm.target", "no_such_module.Method")
    assert "\n" not in str(error.value)

    class Hidden:
        __module__ = "no_such_module"
        __qualname__ = "Hidden"

    assert importable_path(Hidden) is None
    assert caplog.records == []
