"""Tells when a system that began behind is live, what it takes meanwhile, and how long another standstill would cost.

A system that takes D events a second while r come needs B / (D - r) seconds for a backlog of B. The interval of D gives
that of the seconds. Nothing is claimed where it reaches r: near it, the seconds have no bound. `python -m
benchmarks.catchup` prints how often the intervals hold the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

HOUR_S = 3600.0
#: seconds since the start, age of the oldest event that waits, in seconds, and events taken before
Look = tuple[float, float, int]
Claim = Literal["claimed", "not known", "never"]


@dataclass(frozen=True)
class CaughtUp:
    """Seconds until a system was live for good, and the events/s that it took until then; None: not seen."""

    live_s: float | None
    taken_per_s: float | None


@dataclass(frozen=True)
class Needed:
    """Seconds that a standstill would cost, by what was measured after another one; with the reason without them."""

    kind: Claim
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""


def taking(hand_overs: Sequence[Look]) -> list[Look]:
    """The first look, and those that events were taken before: at the end of a trial the driver adds one look more."""
    return [*hand_overs[:1], *(late for early, late in pairwise(hand_overs) if late[2] > early[2])]


def live_since(hand_overs: Sequence[Look], clock: Sequence[Look], bound_s: float, stays_s: float) -> float | None:
    """The instant from which on it is live for good; None if that was not seen for stays_s.

    It is live from the first hand-over on after which no look shows an age above the bound. Between two hand-overs the
    age may be low only because one batch has taken all that waited, and works on it.
    """
    looks = [*hand_overs, *clock]
    late_s = max((at for at, age, _ in looks if age > bound_s), default=-math.inf)
    live_s = next((at for at, _, _ in taking(hand_overs) if at > late_s), None)
    return live_s if live_s is not None and max(at for at, *_ in looks) - live_s >= stays_s else None


def caught_up(hand_overs: Sequence[Look], clock: Sequence[Look], bound_s: float, stays_s: float) -> CaughtUp:
    """Reads it from looks at hand-overs of rows, and by the clock, both in the order of time."""
    live_s = live_since(hand_overs, clock, bound_s, stays_s)
    busy = [look for look in hand_overs if live_s is None or look[0] <= live_s]
    lasted = busy[-1][0] - busy[0][0] if busy else 0.0
    return CaughtUp(live_s, (busy[-1][2] - busy[0][2]) / lasted if lasted > 0 else None)


def needed(
    standstill_s: float, live_per_s: float, taken_per_s: float | None, interval: tuple[float, float] | None
) -> Needed:
    """Extrapolates to a standstill of that length.

    live_per_s: events/s that come meanwhile. taken_per_s: what it takes of a backlog, with its interval.
    """
    if taken_per_s is None or interval is None:
        return Needed("not known", reason="not all of two or more repeats tell what it takes meanwhile")
    low, high = interval
    if high <= live_per_s:
        return Needed("never", reason="it takes no more than comes")
    if low <= live_per_s:
        return Needed("not known", reason="the interval of what it takes reaches the rate at which events come")
    backlog = standstill_s * live_per_s
    seconds, least, most = (backlog / (rate - live_per_s) for rate in (taken_per_s, high, low))
    return Needed("claimed", seconds, least, most)
