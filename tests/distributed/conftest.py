"""What several files share: the package as a user installs it."""

from pathlib import Path

import pytest

from tests.helpers.wheel import install


@pytest.fixture(scope="session")
def installed(built_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bin/ of an environment with the wheel."""
    return install(built_wheel, tmp_path_factory.mktemp("installed") / "venv")
