"""The two kinds of failure a user can meet: their own mistake, and a broken promise of the network."""


class UserError(Exception):
    """A setting or file that cannot work. One line: what, where, what to do. `llcg` ends with exit code 2."""


class ProtocolError(Exception):
    """A message that the algorithm does not allow, or that does not have its declared shape."""
