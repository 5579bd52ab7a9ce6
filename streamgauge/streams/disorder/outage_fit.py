"""Fits outages to a profile by part: their lengths, the time between them, and each part's share.

An event in an outage of length L is delayed by what is left of it, evenly from 0 to L. So the density of delays at d is
P(L > d) / E[L]: it never rises, and its fall is the distribution of the lengths (docs/generation.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streamgauge.base.errors import UserError
from streamgauge.base.units import PS, Tick
from streamgauge.records.profile import Profile, part_name
from streamgauge.streams.disorder.delays import TABLE_BITS, DelayTable

#: denominator of a part's share of its outages that can be chosen
WHOLE = 1 << 16
#: outages that can be chosen, as a multiple of those that are needed, and the largest part of time that they may take
_SPARE, _MOST = 1.5, 0.95
#: the part with the largest share of events out of order is looked for among those with at least one event in so many
_LARGE = 100

Bins = Sequence[tuple[int, int, int]]


@dataclass(frozen=True)
class Fit:
    """Outages that are like a profile."""

    lengths: DelayTable
    spacing: int
    shares: dict[str, int]


def read_profile(file: str) -> Profile:
    """Reads a profile that a user names as delay.outages.like. Raises UserError, which begins with this key."""
    try:
        return Profile.read(Path(file), "analyze its source again")
    except OSError as problem:
        raise UserError(f"delay.outages.like {file}: cannot be read: {problem.strerror}") from None
    except UserError as problem:
        raise UserError(f"delay.outages.like {problem}") from None


def fit(profile: Profile, by: str, tick: Tick, low: int, high: int) -> Fit:
    """Returns outages whose delays, and parts' shares of them, are those of the profile; lengths within low and high.

    Raises UserError if the profile has no such parts, or nothing out of order.
    """
    parts = profile.by_part
    if parts is None or parts.column != by:
        sort = f"by {parts.column}" if parts else "none by part"
        raise UserError(f"delay.outages.like: found a profile {sort}, allowed: one by {by} (analyze --by {by})")
    if not profile.out_of_order:
        raise UserError("delay.outages.like: found a profile without events out of order, allowed: one with some")
    lengths = _lengths(profile.delay_histogram, PS[profile.tick] / PS[tick], low, high)
    late = {part_name(part.part): (part.out_of_order_in_all or 0) / part.events for part in parts.parts}
    large = [part_name(part.part) for part in parts.parts if _LARGE * part.events >= profile.events]
    most = max((late[name] for name in large), default=0.0) or max(late.values())
    out = min(_MOST, _SPARE * most)  # part of the time
    spacing = max(1, round(lengths.mean * (1 - out) / out))
    return Fit(lengths, spacing, {name: min(WHOLE, round(WHOLE * share / most)) for name, share in late.items()})


def _lengths(bins: Bins, scale: float, low: int, high: int) -> DelayTable:
    """Inverse-CDF table of the lengths that give these delays: Grenander's density, by pooling what rises."""
    pooled: list[tuple[float, float]] = []  # (width, events) of neighbouring ranges, from 0 on
    events, end = sum(count for *_, count in bins), 0
    few = events ** (2 / 3)  # so many of the shortest delays are one range: single ranges would give spikes near 0
    for first, past, some in bins:
        for width, count in ((float(first - end), 0.0), (float(past - max(first, end)), float(some))):
            if width <= 0:
                continue
            pooled.append((width, count))
            while len(pooled) > 1 and (pooled[0][1] < few or _rises(*pooled[-2:])):
                (wide, before), (more, after) = pooled[-2:]
                pooled[-2:] = [(wide + more, before + after)]
        end = past
    edges = np.cumsum([width for width, _ in pooled]) * scale
    density = np.array([count / width for width, count in pooled])
    longer = np.append(density[1:], 0.0) / density[0]  # part of the outages that are longer than each edge
    middles = (
        edges - np.diff(edges, prepend=0.0) / 2
    )  # the fall at an edge is spread from one range's middle to the next
    steps = np.linspace(0, 1, (1 << TABLE_BITS) + 1)
    ticks = np.interp(steps, np.r_[0.0, 1 - longer], np.r_[middles, edges[-1]])
    return DelayTable(tuple(int(length) for length in np.clip(np.rint(ticks), max(low, 1), high)))


def _rises(one: tuple[float, float], following: tuple[float, float]) -> bool:
    """True if the density of the following range is no smaller."""
    return one[1] * following[0] <= following[1] * one[0]
