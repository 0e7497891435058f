"""Exceptions with a message for the user, grouped by what can be done about them, and one-line messages."""

import errno
import re
import sys
import traceback
from pathlib import Path
from typing import Any

_SOURCE_PLACES = re.compile(r"^(\[[^\]]*\.(cc|cpp|h|hpp):\d+\]\s*)+")
"""What Gloo's and torch's messages begin with: the place in their sources."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


class UserError(Exception):
    """A mistake in settings or data. The one-line message says what, where and what to do. Exit code 2 of `llcg`."""


class TrainingError(Exception):
    """Training failed. The message explains why, so no traceback is shown. Exit code 1 of `llcg`."""


class PeerLostError(Exception):
    """A collective or point-to-point call failed because another rank died or cannot be reached."""


class PeerTimeoutError(PeerLostError):
    """No heartbeat came from a rank for longer than cluster.timeout allows."""


class ProtocolError(Exception):
    """A message that the algorithm does not allow, or that does not have its declared shape."""


def one_line(error: Exception) -> str:
    """The exception's message with line breaks and runs of blanks replaced by single blanks."""
    return " ".join(str(error).split())


def first_line(error: BaseException) -> str:
    """The first line of the exception's message, or its class, without the place in the sources that Gloo puts before
    it: torch's messages go on with a stack trace."""
    lines = str(error).strip().splitlines()
    return _SOURCE_PLACES.sub("", lines[0]) if lines else type(error).__name__


def place_in(thing: Any, error: Exception) -> str:
    """Where the file that defines a user's class or function was when the exception was raised; empty where it was not:
    the file of a library, or ours, helps nobody."""
    file = getattr(sys.modules.get(thing.__module__), "__file__", None)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f", {Path(str(file)).name} line {lines[-1]}" if lines else ""


def reason_in(thing: Any, error: Exception) -> str:
    """What a user's class or function raised: class, message, and the line of its own file."""
    return f"{type(error).__name__}: {one_line(error)}{place_in(thing, error)}"


def os_error_line(error: OSError) -> str:
    """The file and what the system says of it; of a full disk also what to do."""
    place = f"{error.filename}: " if error.filename else ""
    reason = error.strerror or one_line(error) or type(error).__name__
    advice = "; make room, and start the same command again" if error.errno in _FULL else ""
    return f"{place}{reason}{advice}"
