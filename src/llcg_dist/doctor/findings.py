"""Findings: the results of checks, one line each, with advice; and byte counts in readable units."""

from dataclasses import dataclass

OK, WARN, ERROR = "ok", "warn", "error"


@dataclass(frozen=True)
class Finding:
    """The result of a check: `level` is ok, warn (the job works, but badly) or error (the job cannot work)."""

    level: str
    group: str
    what: str
    advice: str = ""

    @property
    def line(self) -> str:
        return f"{self.what}; {self.advice}" if self.advice else self.what


def format_bytes(num_bytes: float) -> str:
    """1.5 GB, 310 MB, 6.0 KB."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if num_bytes >= scale:
            value = num_bytes / scale
            return f"{value:.1f} {unit}" if value < 100 else f"{value:,.0f} {unit}"
    return f"{num_bytes:.0f} B"
