"""The format of the files that a run goes on from, config.yaml and checkpoints: a number in each of them.

Within a format settings may be added: one that a run has not recorded has its default, which therefore must leave what
a run computes as it was. Where a version cannot go on from the files of the one before, RUN_FORMAT grows by one.
"""

from typing import Any

from llcg_dist.errors import UserError

RUN_FORMAT = 1
UNNUMBERED = 0
"""The format of files without a number, which are older than 1.0; their settings must be there to the last key."""
FORMAT_KEY = "format"


def stamped(content: dict[str, Any]) -> dict[str, Any]:
    """The content of a file, with the number of its format."""
    return {FORMAT_KEY: RUN_FORMAT} | content


def take_format(content: dict[str, Any], name: str) -> int:
    """Removes the number from the content of the file `name` and returns it; UserError where this version does not know
    it."""
    found = content.pop(FORMAT_KEY, UNNUMBERED)
    if type(found) is not int or not UNNUMBERED <= found <= RUN_FORMAT:
        known = f"starts.json names it; this one reads {UNNUMBERED} to {RUN_FORMAT}"
        raise UserError(f"{name}: format {found!r:.40} is that of another version of llcg_dist ({known})")
    return found
