"""The base of all sections of the settings: a dataclass whose rules stand beside its fields."""

import dataclasses
from enum import StrEnum
from typing import Any, ClassVar

from llcg_dist.errors import UserError


class Section:
    """A dataclass of settings that `check` raises UserError for, naming the key and the rule."""

    section: ClassVar[str] = ""
    """What the section's keys begin with."""

    def check(self) -> None:
        """Rules of this section alone; those across sections are in rules.py."""
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            if isinstance(field.type, type) and issubclass(field.type, StrEnum):
                choices = list(field.type)
                self.require(getattr(self, field.name) in choices, field.name, f"must be one of {', '.join(choices)}")

    def require(self, holds: bool, name: str, rule: str) -> None:
        """Raises UserError with the setting and the rule that it breaks."""
        if not holds:
            key = f"{self.section}.{name}" if self.section else name
            raise UserError(f"{key}={getattr(self, name)}: {rule}")

    def at_least(self, least: float, *names: str) -> None:
        rule = "must not be negative" if least == 0 else f"must be at least {least}"
        for name, value in self._given(names):
            self.require(value >= least, name, rule)

    def at_most(self, most: float, *names: str) -> None:
        for name, value in self._given(names):
            self.require(value <= most, name, f"must be at most {most:,}")

    def positive(self, *names: str) -> None:
        for name, value in self._given(names):
            self.require(0 < value < float("inf"), name, "must be a positive number")

    def fractions_below_1(self, *names: str) -> None:
        for name, value in self._given(names):
            self.require(0 <= value < 1, name, "must lie in [0, 1)")

    def _given(self, names: tuple[str, ...]) -> list[tuple[str, Any]]:
        """Names and values; a setting that may be None has no rule to break."""
        return [(name, getattr(self, name)) for name in names if getattr(self, name) is not None]
