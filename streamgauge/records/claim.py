"""A claim: what may be said of a cell's rate."""

from __future__ import annotations

from typing import Literal

from streamgauge.records.record import Part

Kind = Literal["proven", "at least", "estimated", "contradicted", "wrong", "none"]


def mark_of(kind: str) -> str:
    """The word that stands beside a rate or a latency wherever it is shown; empty if it is not in doubt, or absent."""
    return kind if kind in ("at least", "estimated", "not settled", "not sustained") else ""


def with_mark(name: str, kind: str) -> str:
    """A name, with the mark of a figure in doubt."""
    return f"{name} ({mark_of(kind)})" if mark_of(kind) else name


class Claim(Part):
    """Claim about a rate: a figure only where one is allowed, and the sentence that explains it."""

    kind: Kind
    sentence: str
    rate_events_per_s: float | None = None
    interval: tuple[float, float] | None = None
    is_too_wide: bool = False
    is_bound: bool = False  # the rate is the most that was offered, and tells nothing of how cells differ

    @property
    def mark(self) -> str:
        return mark_of(self.kind)
