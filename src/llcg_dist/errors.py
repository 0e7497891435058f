"""Exceptions with a message for the user, grouped by what can be done about them, and one-line messages."""


class UserError(Exception):
    """A setting or file that cannot work. One line: what, where, what to do. `llcg` ends with exit code 2."""


class TrainingError(Exception):
    """Training failed for a reason that the message explains, so that no traceback is shown. Exit code 1."""


class PeerLostError(Exception):
    """A collective or point-to-point call failed because another rank died or cannot be reached."""


class PeerTimeoutError(PeerLostError):
    """No heartbeat came from a rank for longer than cluster.timeout allows."""


class ProtocolError(Exception):
    """A message that the algorithm does not allow, or that does not have its declared shape."""


def one_line(error: Exception) -> str:
    """The exception's message with line breaks and runs of blanks replaced by single blanks."""
    return " ".join(str(error).split())


def first_line(error: Exception) -> str:
    """The first line of the exception's message, or its class: torch's messages go on with a stack trace."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
