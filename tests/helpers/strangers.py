"""Another user of this host, who can reach what listens on it, and nothing else of a job."""

import os
import shutil

import pytest


def as_nobody(*command: str) -> list[str]:
    """The command as the user nobody, without any privilege; skips the test where that cannot be."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("running a command as another user needs root and setpriv")
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--", *command]
