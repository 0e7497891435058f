"""The page of the reference that lists every setting: written from the schema and the presets, never by hand."""

import re
from collections.abc import Iterator

from llcg_dist.cli.describe import Key, KeySection, describe
from llcg_dist.cli.help import pages, presets
from llcg_dist.config.compose import compose_config

BEGINNING = """# Settings

This page lists all settings. Write a setting as `key=value` after any command, and a preset of a group as `group=name`:
`llcg train model=gcn algorithm.K=16`. In Python, use `overrides={"algorithm.K": 16}`. An unknown key or a value of the
wrong type ends the command with one line that names it. `llcg train [key=value ...] --help` prints this list with the
values of your settings.
"""

SECTIONS = {
    "": ("The run", "Rounds, seed, run folder and resuming."),
    "algorithm": ("Algorithm", "The rounds of a method: local steps, averaging, correction."),
    "train": ("Training", "Training steps of machines and server."),
    "sampling": ("Sampling", "Neighbour sampling for mini-batches."),
    "model": ("Model", "Sizes and layers of the model, beyond `model=NAME`."),
    "partition": ("Partition", "How the graph is cut, and where the parts are stored."),
    "cluster": ("Cluster", "Machines, processes, connections, faults."),
    "evaluate": ("Evaluation", "When and how a model is scored."),
    "early_stop": ("Early stopping", "When a run ends before its last round."),
    "checkpoint": ("Checkpoints", "When and where a run saves the state that a resume needs."),
    "diagnostics": ("Diagnostics", "Measuring the quantities of the theorems."),
}
"""{what the keys begin with: (title, what they are about)}, in the order of the page."""

GROUPS = {
    "algorithm": "The training method; sets `algorithm.name` and the settings of the method.",
    "model": "The model; sets `model.name`.",
    "dataset": "The source of the graph; sets `dataset.source`.",
    "partition": "How the graph is cut into parts; sets `partition.method`.",
    "cluster": "Where the ranks run.",
}
EXPERIMENTS = {"experiment": "Complete sets of settings. Combine several with `experiment=[a,b]`."}
"""The group at the end of the page, because it is long."""


def settings_page() -> str:
    """The page as Markdown, with an anchor for every key: `settings.md#algorithm.K`."""
    first, *of_datasets = describe(compose_config([]))
    parts = [BEGINNING, "## Groups\n", *map(_group, GROUPS)]
    for prefix, (title, about) in SECTIONS.items():
        keys = [key for key in first.keys if key.name.rpartition(".")[0].partition(".")[0] == prefix]
        parts += [f"## {title}\n\n{about}\n", *(_entry(key, key.name) for key in keys)]
    return "\n".join([*parts, *_datasets(of_datasets), "## Experiments\n", _group(*EXPERIMENTS)])


def _group(group: str) -> str:
    """Heading, meaning and choices of a group."""
    choices = "\n".join(f"- `{choice}`: {_prose(said)}" for choice, said in presets(group))
    return f"### `{group}=` {{#{group}}}\n\n{(GROUPS | EXPERIMENTS)[group]}\n\n{choices}\n"


def _datasets(sections: list[KeySection]) -> Iterator[str]:
    """Keys of all data sets, then of each; the first key of a name has the name as its anchor."""
    seen: set[str] = set()
    for section in sections:
        names = section.title.removeprefix("with ").removesuffix(", which is chosen").removeprefix("dataset=")
        title = ", ".join(f"`dataset={name}`" for name in names.split("|"))
        yield f"## {'Any data set' if names == 'any dataset' else title}\n"
        for key in section.keys:
            yield _entry(key, f"{key.name}-{names.partition('|')[0]}" if key.name in seen else key.name)
            seen.add(key.name)


def _entry(key: Key, anchor: str) -> str:
    """Heading, type or choices, default and meaning of a key."""
    choices = [choice for choice in key.type_name.split(" | ") if choice != "None"]
    if len(choices) > 1 and not {"int", "str", "float"} & set(choices):
        kind = "one of " + ", ".join(f"`{choice}`" for choice in choices)
    else:
        kind = " or ".join(f"`{choice}`" if " " not in choice else choice for choice in choices)
    values = " or ".join(f"`{value}`" for value in key.value.split(" | "))
    return f"### `{key.name}` {{#{anchor}}}\n\n{kind}; default {values}\n\n{_prose(key.text)}\n"


def _prose(text: str) -> str:
    """Plain text as Markdown: signs stand for themselves, and `llcg help PAGE` is a link to the page."""
    parts = re.split(r"(`[^`]*`)", text)
    text = "".join(part if part.startswith("`") else re.sub(r"([*_<\[\]])", r"\\\1", part) for part in parts)
    return re.sub(r"`?llcg help (\w+)`?", _link, text)


def _link(command: re.Match[str]) -> str:
    page = pages().get(command[1])
    return f"[llcg help {command[1]}](../{page.parent.name}/{page.name})" if page else command[0]
