"""Validation of composed settings: every section checks itself, rules across sections are here.

What a model or a method cannot work with is theirs to say (models/rules.py, Algorithm.check).
"""

import dataclasses
from pathlib import Path
from typing import Any

from llcg_dist.config.schema import Config
from llcg_dist.config.section import Section
from llcg_dist.errors import UserError


def validate(config: Config) -> None:
    """Raises UserError for the first setting that cannot work, naming the key and the rule."""
    config.check()
    for field in dataclasses.fields(config):
        section = getattr(config, field.name)
        if isinstance(section, Section):
            section.check()
    if config.run_dir and Path(config.run_dir).resolve() == Path(config.partition.root).resolve():
        rule = "must not be partition.root; records and parts need folders of their own"
        raise UserError(f"run_dir={config.run_dir}: {rule}")
    every = config.evaluate.every
    why = "makes none" if every == 0 else "makes them by the clock"
    rule = f"judges by evaluations, and evaluate.every={every} {why}"
    judged = isinstance(every, int) and every > 0
    require(not config.early_stop.patience or judged, config, "early_stop.patience", rule)
    mirror, others = config.checkpoint.mirror, (config.run_dir, config.checkpoint.dir)
    if mirror and Path(mirror).resolve() in [Path(other).resolve() for other in others if other]:
        require(False, config, "checkpoint.mirror", "must be another folder than run_dir and checkpoint.dir")


def require(holds: bool, config: Config, key: str, rule: str) -> None:
    """Raises UserError with the setting and the rule that it breaks."""
    if not holds:
        value: Any = config
        for name in key.split("."):
            value = getattr(value, name)
        raise UserError(f"{key}={value}: {rule}")
