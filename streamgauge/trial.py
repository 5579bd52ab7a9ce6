"""The records of a trial: what the driver and the system saw, and what was concluded.

Wall times are int64 nanoseconds since the epoch; ages and latencies are seconds here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

Outcome = Literal["sustainable", "unsustainable", "inconclusive"]


@dataclass(frozen=True)
class Sample:
    """One micro-batch (or one look at a system that has none)."""

    at_s: float  # since the trial's start
    age_s: float  # age of the oldest event offered and not yet handed over
    backlog: int  # offered − handed over, in events
    taken: int  # handed over since the start, in events
    warm: bool = True  # False while warming up: left out of a verdict


@dataclass(frozen=True)
class TrialObservation:
    """All that a verdict may look at."""

    rate_events_per_s: float
    seconds: float
    samples: tuple[Sample, ...]
    offered: int
    taken: int
    overflow: bool = False  # a queue was full: the trial ended there
    invalid: str | None = None  # why it measures nothing: driver slipped, a process died, output wrong …


@dataclass(frozen=True)
class Verdict:
    """What a verdict function says; missing data is inconclusive, never a pass."""

    outcome: Outcome
    reason: str
    figures: dict[str, float] = field(default_factory=dict)  # slope, interval, age … by name with unit


@dataclass(frozen=True)
class Trial:
    """One run of a cell at one rate, as the search sees it."""

    rate_events_per_s: float
    verdict: Verdict
    purpose: str = ""  # probe, bracket, bisect, confirm
    carried_events_per_s: float | None = None  # what the system took while overloaded
    valid: bool = True  # False: it measured nothing, whatever its verdict says
    details: dict[str, Any] = field(default_factory=dict)


def worst_clock(offsets: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
    """Of (offset, error bound) the one that may be furthest from 0."""
    return max(offsets, key=lambda clock: abs(clock[0]) + clock[1], default=None)
