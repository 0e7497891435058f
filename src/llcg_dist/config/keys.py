"""The keys of all settings by their dotted names, and those that a misspelled one may have meant."""

import dataclasses
import difflib
from collections.abc import Iterator, Sequence

from llcg_dist.config.dataset import DatasetConfig
from llcg_dist.config.datasets import DATASETS
from llcg_dist.config.schema import Config

DATASET = "dataset."


def keys_of(schema: type, prefix: str = "") -> Iterator[tuple[str, "dataclasses.Field[object]"]]:
    """(dotted key, field) of a section's settings, those of the sections in it included."""
    for field in dataclasses.fields(schema):
        if isinstance(field.type, type) and dataclasses.is_dataclass(field.type):
            yield from keys_of(field.type, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}", field


def all_keys() -> list[str]:
    """Every dotted key, those of every source of graphs included, and the groups."""
    sections = [field.name for field in dataclasses.fields(Config) if dataclasses.is_dataclass(field.type)]
    of_sources = [key for source in DATASETS.values() for key, _ in keys_of(source, DATASET)]
    return list(dict.fromkeys([*sections, "experiment", *(key for key, _ in keys_of(Config)), *of_sources]))


def sources_with(key: str) -> list[str]:
    """The choices of `dataset` that have this key, or keys below it."""

    def has(schema: type) -> bool:
        return any(known == key or known.startswith(f"{key}.") for known, _ in keys_of(schema, DATASET))

    return [source for source, schema in DATASETS.items() if has(schema)]


def unknown_key(key: str) -> str:
    """The message for a key that these settings do not have: what it may have meant, or which dataset has it."""
    sources = sources_with(key)
    if sources:
        return f"{key}: is a setting of dataset={'|'.join(sources)}; add dataset={sources[0]} to use it"
    nearest = _nearest_keys(key)
    hint = f"did you mean {' or '.join(map(_with_source, nearest))}? " if nearest else ""
    return f"unknown key {key}; {hint}`llcg train --help` lists the keys"


def did_you_mean(word: str, choices: Sequence[str]) -> str:
    """`; did you mean X?` with the choice that is spelled most alike, or nothing."""
    by_lower = {choice.lower(): choice for choice in choices}
    nearest = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[nearest[0]]}?" if nearest else ""


def _nearest_keys(key: str) -> list[str]:
    """At most two keys that are spelled alike: the whole key, else its last word."""
    known = {name.lower(): name for name in reversed(all_keys())}
    wanted, last = key.lower(), key.lower().rpartition(".")[2]
    if wanted in known:
        return [known[wanted]]
    same_last = [name for lower, name in known.items() if lower.rpartition(".")[2] == last]
    if same_last:
        return sorted(same_last)[:2]
    section = f"{wanted.rpartition('.')[0]}."
    endings = [name for lower, name in known.items() if lower.endswith(f"_{last}") and lower.startswith(section[:-1])]
    if endings:
        return sorted(endings)[:2]
    return [known[lower] for lower in difflib.get_close_matches(wanted, known, n=1, cutoff=0.7)]


def _with_source(key: str) -> str:
    """The key, and the datasets that it is a setting of where not all of them have it."""
    common = {name for name, _ in keys_of(DatasetConfig, DATASET)}
    if not key.startswith(DATASET) or key in common:
        return key
    return f"{key} (of dataset={'|'.join(sources_with(key))})"
