"""Comparison of composed settings: between the ranks of a job, with those a store was built from, and on resume."""

import dataclasses
import hashlib
import json
from typing import Any

from llcg_dist.config.schema import Config

# Keys of paths, network interfaces and memory. They do not change what a job computes, so hosts of one job may differ
# in them; what lies at init_from does, but the server alone reads it, and only before the first round.
LOCATION_KEYS = {
    "run_dir", "partition.root", "dataset.root", "checkpoint.dir", "checkpoint.mirror", "evaluate.scratch",
    "cluster.interface", "cluster.start", "cluster.key_file", "init_from", "dataset.memory",
}  # fmt: skip

# Keys that may differ when a run is resumed: none of them changes the model that the run ends with; those of losses do
# where there are any, which the rows say.
_RESUMABLE = LOCATION_KEYS | {
    "resume", "verify", "checkpoint.every", "checkpoint.keep", "cluster.backend", "cluster.device", "cluster.threads",
    "cluster.server_threads", "cluster.timeout", "cluster.stall_timeout", "cluster.join_timeout",
    "cluster.max_restarts", "cluster.audit", "cluster.on_loss", "cluster.stand_in",
    "cluster.min_machines", "cluster.max_returns", "cluster.link_mbit", "cluster.sealed", "logger", "sampling.prefetch",
    "sampling.features_on",
    "evaluate.process", "diagnostics.every", "diagnostics.repeats", "diagnostics.chunk", "diagnostics.hessian_steps",
}  # fmt: skip


def flat_items(config: Any, prefix: str = "") -> dict[str, Any]:
    """The settings as {dotted key: value}."""
    items: dict[str, Any] = {}
    for f in dataclasses.fields(config):
        value = getattr(config, f.name)
        if dataclasses.is_dataclass(value):
            items |= flat_items(value, f"{prefix}{f.name}.")
        elif isinstance(value, dict):
            items |= flat_dict(value, f"{prefix}{f.name}.")
        else:
            items[prefix + f.name] = value
    return items


def fingerprint(config: Any, ignore: set[str] = LOCATION_KEYS) -> str:
    """The first 16 hex digits of the SHA-256 of all settings except the keys in `ignore`."""
    items = {key: value for key, value in flat_items(config).items() if key not in ignore}
    return hashlib.sha256(json.dumps(items, sort_keys=True).encode()).hexdigest()[:16]


def shared_settings(config: Config) -> dict[str, Any]:
    """{dotted key: value} of the settings in which all ranks of a job must agree, as they read back from JSON."""
    items = {key: value for key, value in flat_items(config).items() if key not in LOCATION_KEYS}
    return json.loads(json.dumps(items))


def resume_conflicts(old: dict[str, Any], new: Config) -> list[str]:
    """One line per key that differs between a run's config.yaml (`old`) and `new` and that a resumed run must keep.

    num_rounds may grow, and so may early_stop.patience, up to none.
    """
    now = flat_items(new)
    before = flat_dict(old)
    differing = [key for key in {*now, *before} if now.get(key) != before.get(key) and key not in _RESUMABLE]
    differing = [key for key in differing if not _lets_run_longer(key, before.get(key), now.get(key))]
    return [f"{key} ({before.get(key)} there, {now.get(key)} here)" for key in sorted(differing)]


def _lets_run_longer(key: str, before: Any, now: Any) -> bool:
    """Whether the new value changes nothing but that there may be more rounds."""
    if key == "early_stop.patience":
        return not now or (isinstance(before, int) and 0 < before < now)
    return key == "num_rounds" and isinstance(before, int) and now > before


def flat_dict(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested dictionary as {dotted key: value}."""
    items: dict[str, Any] = {}
    for key, value in nested.items():
        items |= flat_dict(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return items
