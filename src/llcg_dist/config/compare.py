"""When do two composed settings mean the same job: for ranks of one job, for a store, for resuming a run."""

import dataclasses
import hashlib
import json
from typing import Any

from llcg_dist.config.schema import Config

# Settings that say where a job runs, not what it computes: ranks on different hosts may differ in them.
PLACES = {
    "run_dir", "partition.root", "dataset.root", "checkpoint.dir", "evaluate.scratch", "cluster.interface",
    "cluster.start",
}  # fmt: skip

# Settings that may also change when a run is resumed; the model it ends with stays the same.
_RESUMABLE = PLACES | {
    "resume", "verify", "checkpoint.every", "checkpoint.keep", "cluster.backend", "cluster.device", "cluster.threads",
    "cluster.timeout", "cluster.join_timeout", "cluster.max_restarts", "cluster.audit", "logger",
    "diagnostics.every", "diagnostics.repeats", "diagnostics.chunk", "diagnostics.hessian_steps",
}  # fmt: skip


def flat_items(config: Any, prefix: str = "") -> dict[str, Any]:
    """The settings as {dotted key: value}."""
    items: dict[str, Any] = {}
    for f in dataclasses.fields(config):
        value = getattr(config, f.name)
        if dataclasses.is_dataclass(value):
            items |= flat_items(value, f"{prefix}{f.name}.")
        else:
            items[prefix + f.name] = value
    return items


def fingerprint(config: Any, ignore: set[str] = PLACES) -> str:
    """A short hash of settings; two ranks, or a store and its reader, with the same one mean the same thing."""
    items = {key: value for key, value in flat_items(config).items() if key not in ignore}
    return hashlib.sha256(json.dumps(items, sort_keys=True).encode()).hexdigest()[:16]


def meaning(config: Config) -> dict[str, Any]:
    """The settings that all ranks of a job must share, as they look after crossing as JSON."""
    items = {key: value for key, value in flat_items(config).items() if key not in PLACES}
    return json.loads(json.dumps(items))


def resume_conflicts(old: dict[str, Any], new: Config) -> list[str]:
    """What keeps `new` from continuing a run of the settings `old` (as config.yaml holds them): a line per key."""
    now = flat_items(new)
    before = flat_dict(old)
    differing = [key for key in {*now, *before} if now.get(key) != before.get(key) and key not in _RESUMABLE]
    if (
        "num_rounds" in differing
        and isinstance(before.get("num_rounds"), int)
        and new.num_rounds > before["num_rounds"]
    ):
        differing.remove("num_rounds")
    return [f"{key} ({before.get(key)} there, {now.get(key)} here)" for key in sorted(differing)]


def flat_dict(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    items: dict[str, Any] = {}
    for key, value in nested.items():
        items |= flat_dict(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return items
