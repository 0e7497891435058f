"""The answer of `llcg advise`: in plain words, as JSON, and as a preset of experiment/."""

import math
from dataclasses import dataclass
from typing import Any

import yaml

from llcg_dist.advise.decision import Curve, expected_speed_up, target_of
from llcg_dist.config.schema import Config
from llcg_dist.data.cut import PartitionQuality

NETWORKS = (100, 1_000, 10_000)
"""Mbit/s, for what the same job would take elsewhere."""


@dataclass(frozen=True)
class Facts:
    """What was measured besides the curves."""

    machines: int
    batch_size: int
    link_mbit: float
    noise_at_start: float
    noise_after: float
    """Gradient noise scale in examples."""
    parts: dict[str, PartitionQuality]
    alignment: dict[str, float]
    configs: dict[str, Config]
    """By candidate with several machines."""

    @property
    def speed_up(self) -> float:
        """Of the machines over one, as the noise scale after the pilot predicts."""
        return expected_speed_up(self.noise_after, self.batch_size, self.machines)


@dataclass(frozen=True)
class Answer:
    chosen: Curve
    curves: list[Curve]
    facts: Facts
    settings: dict[str, Any]
    """Advised, by dotted key; groups of presets by their names alone."""
    reasons: list[str]

    @property
    def target(self) -> float:
        return target_of(self.curves)

    def as_json(self) -> dict[str, Any]:
        facts = self.facts
        return {
            "distribute": not self.chosen.alone,
            "chosen": self.chosen.name,
            "settings": self.settings,
            "why": self.reasons,
            "target_score": self.target,
            "score_range": list(self.chosen.score_range),
            "seconds_to_target": _finite(self.chosen.seconds_to(self.target)),
            "rounds_to_target": self.chosen.rounds_to(self.target),
            "bytes_a_round": self.chosen.round_bytes,
            "candidates": [self.candidate(curve) for curve in self.curves],
            "gradient_noise_scale": {"start": _finite(facts.noise_at_start), "after": _finite(facts.noise_after)},
            "expected_speed_up": facts.speed_up,
            "parts": {name: vars(quality) for name, quality in facts.parts.items()},
            "alignment": facts.alignment,
            "link_mbit": facts.link_mbit,
        }

    def candidate(self, curve: Curve) -> dict[str, Any]:
        mean = curve.seconds[-1] / len(curve.seconds)
        computing, scale = mean - curve.link_seconds, self.facts.link_mbit
        return {
            "name": curve.name,
            "seconds_to_target": _finite(curve.seconds_to(self.target)),
            "rounds_to_target": curve.rounds_to(self.target),
            "best_score": curve.best,
            "rounds": len(curve.scores),
            "seconds_a_round": mean,
            "seconds_a_round_at_mbit": {rate: computing + curve.link_seconds * scale / rate for rate in NETWORKS},
            "bytes_a_round": curve.round_bytes,
            "overrides": curve.overrides,
        }

    def preset(self) -> str:
        """A file of experiment/ with the advised settings."""
        groups = [{f"override /{key}": value} for key, value in self.settings.items() if "." not in key]
        nested: dict[str, Any] = {"defaults": groups} if groups else {}
        for key, value in self.settings.items():
            section, dot, name = key.partition(".")
            if dot:
                nested.setdefault(section, {})[name] = value
        lines = ["What `llcg advise` found on this graph; leave these keys out of the command line, which goes first."]
        comments = [f"# {line}" for line in [*lines, *self.reasons]]
        return "\n".join(["# @package _global_", *comments, yaml.safe_dump(nested, sort_keys=False)])


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None
