"""The kinds of failure a user can meet, by what they can do about them."""


class UserError(Exception):
    """A setting or file that cannot work. One line: what, where, what to do. `llcg` ends with exit code 2."""


class TrainingError(Exception):
    """Training went wrong in a way that the message explains; no traceback helps. Exit code 1."""


class PeerLostError(Exception):
    """A collective failed: another rank died, or cannot be reached."""


class SilenceError(PeerLostError):
    """A rank said nothing for longer than it may."""


class ProtocolError(Exception):
    """A message that the algorithm does not allow, or that does not have its declared shape."""
