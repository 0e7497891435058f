"""`--cfg job` and `--info` of a command, as in Hydra: the composed settings as YAML, and where they come from."""

import contextlib
import io
import logging
from collections.abc import Iterator, Sequence

from hydra.core.global_hydra import GlobalHydra

from llcg_dist.cli.arguments import OneLineParser
from llcg_dist.config.compose import opened_conf
from llcg_dist.errors import UserError
from llcg_dist.records.console import say

_FLAGS = ("-c", "--cfg", "-i", "--info")
_KINDS_OF_INFO = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")


def asks_for_settings(arguments: Sequence[str]) -> bool:
    """Whether the settings are to be shown in place of running the command."""
    return any(argument.partition("=")[0] in _FLAGS for argument in arguments)


def show_settings(arguments: Sequence[str]) -> int:
    """Prints what Hydra prints for these flags; returns the exit code."""
    asked = _parser().parse_intermixed_args(_with_kind_of_info(arguments))
    with opened_conf(), _captured() as (shown, refused):
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        try:
            if asked.info:
                hydra.show_info(asked.info, "config", asked.overrides)
            else:
                hydra.show_cfg("config", asked.overrides, asked.cfg, asked.package, asked.resolve)
        except SystemExit:
            raise UserError(f"--package {asked.package}: {refused.getvalue().strip()}") from None
    say(shown.getvalue().removesuffix("\n"))
    return 0


@contextlib.contextmanager
def _captured() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """(stdout, stderr) of what Hydra prints: part of it goes through logging, which would trip over a closed pipe."""
    root, shown, refused = logging.getLogger(), io.StringIO(), io.StringIO()
    handlers, level = list(root.handlers), root.level
    try:
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(refused):
            yield shown, refused
    finally:
        root.handlers[:], root.level = handlers, level


def _parser() -> OneLineParser:
    """The flags of Hydra that show settings; those that have no meaning beside them are accepted."""
    parser = OneLineParser("llcg")
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("-c", "--cfg", choices=("job", "hydra", "all"))
    parser.add_argument("-i", "--info", nargs="?", const="all", choices=_KINDS_OF_INFO)
    parser.add_argument("-p", "--package")
    parser.add_argument("--resolve", action="store_true")
    parser.add_argument("-m", "--multirun", action="store_true")
    return parser


def _with_kind_of_info(arguments: Sequence[str]) -> list[str]:
    """`--info` without a kind would take an override after it for one: it becomes `--info=all`."""
    following = [*arguments[1:], ""]
    bare = [
        argument in ("-i", "--info") and next_one not in _KINDS_OF_INFO
        for argument, next_one in zip(arguments, following, strict=True)
    ]
    return ["--info=all" if is_bare else argument for argument, is_bare in zip(arguments, bare, strict=True)]
