"""The file in which a rank tells torchrun's agent why it failed."""

import contextlib
import os
import time
from pathlib import Path

from llcg_dist.data.atomic_files import write_json
from llcg_dist.records.console import print_error


def fail(message: str, exit_code: int) -> int:
    """Tells the user, and the launcher through torchrun's error file."""
    print_error(message)
    if path := _error_file():
        content = {"message": message, "extraInfo": {"timestamp": str(int(time.time()))}}
        with contextlib.suppress(OSError):  # a disk that is full may be the reason; half a file would fail the launcher
            write_json(path, {"message": content})
    return exit_code


def forget_failure() -> None:
    """What a worker has told about its end is not the end of the rank."""
    if path := _error_file():
        path.unlink(missing_ok=True)


def _error_file() -> Path | None:
    named = os.environ.get("TORCHELASTIC_ERROR_FILE")
    return Path(named) if named else None
