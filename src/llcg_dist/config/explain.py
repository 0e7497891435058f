"""One-line messages for what Hydra and OmegaConf raise about settings."""

import difflib
import re
from collections.abc import Callable, Sequence

from llcg_dist.config.keys import did_you_mean, unknown_key
from llcg_dist.config.own_files import preset_folders

_KEY = r".* full_key: (\S+)"
_SEVERAL = "several values are a sweep (llcg train -m); a list is written [a,b], a text with a comma in quotes"
_NOT_TAKEN_AWAY = "nothing can be taken away; leave this out for the default, or give a value"
_MESSAGES: list[tuple[str, Callable[..., str]]] = [
    (f"Key '[^']+' (?:is )?not in '\\w+'{_KEY}", unknown_key),
    (
        f"Invalid value '(.*)', expected one of \\[(.*?)\\]{_KEY}",
        lambda value, choices, key: (
            f"{key}={value}: must be one of {choices}{did_you_mean(value, choices.split(', '))}"
        ),
    ),
    (
        f"Value '(.*)' of type '\\w+' could not be converted to (\\w+){_KEY}",
        lambda value, kind, key: f"{key}={value}: must be of type {kind.lower()}",
    ),
    (
        f"Value '(.*)' of type '\\w+' is incompatible with type hint 'Union\\[(.*?)\\]'{_KEY}",
        lambda value, kinds, key: f"{key}={value}: must be of type {kinds.replace(', ', ' or ')}",
    ),
    (
        r"Could not append to config. An item is already at '([^']+)'",
        lambda key: f"+{key}: this setting is there already; leave the + out",
    ),
    (
        r"Error merging override ~(\S+) ",
        lambda key: f"~{key}: {_NOT_TAKEN_AWAY}",
    ),
    (
        r"Could not delete from config. The value of '([^']+)' is",
        lambda key: f"~{key}: {_NOT_TAKEN_AWAY}",
    ),
    (
        r"Error merging override (\S+?)=(.*) Cannot (?:merge|assign) .*",
        lambda key, value: f"{key}={value}: must be keys and values, such as {key}.name=value",
    ),
    (
        r"Ambiguous value for argument '([^']+)'",
        lambda given: f"{given}: {_SEVERAL}",
    ),
    (
        r"Sweep parameters '([^']+)' requires --multirun",
        lambda given: f"{given}: {_SEVERAL}",
    ),
    (
        r"missing mandatory value: .* full_key: (\w+)\.(\w+)",
        lambda group, key: f"{group}.{key}: has no value; a preset of {group} must give it, and ~{group} takes it away",
    ),
    (
        r"Config group override must be a string or a list. Got (\w+)",
        lambda kind: f"a group of presets takes the name of one, such as algorithm=llcg, and no {kind}",
    ),
    (
        r"Key '([^']+)' is not in struct full_key: (\S+)\.\1 ",
        lambda name, key: f"{key}: is given one by one, as {key}.{name}=value",
    ),
    (f"field '[^']+' is not Optional{_KEY}", lambda key: f"{key}=null: must have a value"),
    (f"Value (.*) \\(\\w+\\) is not a valid input{_KEY}", lambda value, key: f"{key}={value}: must be one word"),
    (
        f"override \\S+?=(.*) Invalid value assigned: \\w+ is not a ListConfig, list or tuple.{_KEY}",
        lambda value, key: f"{key}={value}: must be a list, such as '{key}=[{value}]'",
    ),
]
"""OmegaConf's messages, on one line, and ours for them."""


def explain(error: Exception) -> str:
    """One line with the key and the cause; Hydra's own messages run over several lines and end in its search path."""
    text = str(error) if error.__cause__ is None else f"{error} {error.__cause__}"
    text = " ".join(text.split())
    for pattern, message in _MESSAGES:
        if found := re.search(pattern, text):
            return message(*found.groups())
    no_option = re.search(
        r"Could not (?:find|load) '([^']+)'(?: Available options in '([^']+)': (.*?)(?: Config search|$))?", text
    )
    if no_option:
        group = no_option[2] or no_option[1].partition("/")[0]  # of several experiments Hydra names the file only
        option = no_option[1].removeprefix(f"{group}/")
        return f"{group}={option}: must be one of {_choices(group, option, (no_option[3] or '').split())}"
    override = getattr(error, "override", None)
    if override is not None:
        given = override or "''"
        return f"{given}: cannot be read as a setting (key=value in Hydra's grammar){_quoted(override)}"
    return f"settings: {text.split(' Config search path')[0] or type(error).__name__}"


def presets_of(group: str) -> list[str]:
    """The names of a group's presets, sub-folders included, the user's own among them."""
    folders = [folder / group for folder in preset_folders()]
    files = [(file, folder) for folder in folders for file in folder.rglob("*.yaml")]
    return sorted(file.relative_to(folder).with_suffix("").as_posix() for file, folder in files)


def _quoted(override: str) -> str:
    """How a value is written that has characters of Hydra's grammar in it; empty where quotes would not help."""
    found = re.fullmatch(r"([\w.@/]+)=([^\"']+)", override)
    return f"; in quotes: '{found[1]}=\"{found[2]}\"'" if found else ""


def _choices(group: str, option: str, listed: Sequence[str]) -> str:
    """The files of a group, the nearest to the option first, three of each sub-folder; Hydra lists no sub-folders."""
    names = presets_of(group) or list(listed)
    nearest = difflib.get_close_matches(option, names, n=3, cutoff=0.4)
    shown: dict[str, list[str]] = {}
    for name in [*nearest, *(name for name in names if name not in nearest)]:
        shown.setdefault(name.rpartition("/")[0], []).append(name)
    first = [name for inside, all_of in shown.items() for name in (all_of[:3] if inside else all_of)]
    more = f"; llcg help {group} lists all" if len(first) < len(names) else ""
    return ", ".join(first) + more + did_you_mean(option, names)
