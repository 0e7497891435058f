"""An argparse parser whose errors are a UserError of one line."""

import argparse
from typing import NoReturn

from llcg_dist.errors import UserError


class OneLineParser(argparse.ArgumentParser):
    """Takes no abbreviations and leaves --help to cli/help.py; `command` is what the user typed, for messages."""

    def __init__(self, command: str) -> None:
        super().__init__(prog=command, add_help=False, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} ({self.prog} --help)")
