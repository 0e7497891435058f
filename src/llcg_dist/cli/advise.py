"""`llcg advise [--seconds N] [--json] [--write FILE] [overrides]`: a pilot on the user's graph, and what follows."""

import json
from pathlib import Path

from llcg_dist.cli.arguments import OneLineParser
from llcg_dist.data.atomic_files import make_folder, write_bytes
from llcg_dist.errors import UserError
from llcg_dist.records.console import say

_SECONDS = 60.0


def advise(arguments: list[str]) -> int:
    """Prints the answer in words, or with --json as JSON alone; returns the exit code."""
    parser = OneLineParser("llcg advise")
    parser.add_argument("--seconds", type=float, default=_SECONDS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", type=Path)
    parser.add_argument("overrides", nargs="*")
    asked = parser.parse_intermixed_args(arguments)
    if not 0 < asked.seconds < float("inf"):
        raise UserError(f"--seconds {asked.seconds:g}: must be a positive number")
    for override in asked.overrides:
        if override.partition("=")[0] == "algorithm":
            raise UserError(f"{override}: the method is what llcg advise finds out; leave it out")
    if asked.write:  # before the pilots, which take minutes
        make_folder(asked.write.parent, "--write")
        if asked.write.is_dir():
            raise UserError(f"--write {asked.write}: is a folder; name a file in it")
    from llcg_dist.advise.pilots import advise as ask  # torch and the samplers take seconds to import
    from llcg_dist.advise.words import in_words

    found = ask(asked.overrides, asked.seconds, _nothing if asked.json else say)
    say(json.dumps(found.as_json(), indent=2) if asked.json else f"\n{in_words(found)}")
    if asked.write:
        write_bytes(asked.write, found.preset().encode())
        if not asked.json:
            say(f"kept in {asked.write}")
    return 0


def _nothing(line: str) -> None: ...
