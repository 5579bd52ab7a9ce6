"""Events whose times lie years from those of all others, as of another unit or of a clock that was not set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from streamgauge.base.units import PS, TIME_UNITS, Tick, TimeUnit, ticks_per_second
from streamgauge.streams.disorder.blocks import Blocks, Region
from streamgauge.streams.disorder.definitions import Times
from streamgauge.streams.disorder.profile import frequency_bins

_DAY_S, _YEAR_S = 86_400, 366 * 86_400
#: whole columns of another unit are recognised by years that streams have
_PLAUSIBLE_S = (631_152_000, 2_840_140_800)  # 1990 to 2060
_ROUNDS = 4
_BINS = 1000


@dataclass(frozen=True)
class Group:
    """A number of events, and the extremes of their times."""

    low: int
    high: int
    events: int

    @property
    def span(self) -> int:
        return self.high - self.low


@dataclass(frozen=True)
class Far:
    """Events, by the region of their times, and all others."""

    kind: Literal["two_units", "unit", "clock_at_1970", "far_behind", "far_ahead"]
    region: Region
    own: Group
    main: Group
    unit: TimeUnit = "s"  # two_units, unit: the coarser unit, in which some or all of the times are
    region_is_coarse: bool = True
    """two_units: true if the region has the times of the coarser unit, false if those of the unit as declared"""


def far(blocks: Blocks, tick: Tick, unit: TimeUnit | None) -> list[Far]:
    """Finds groups that lie apart, the farthest first. A group far behind or ahead may leave the disorder as it is."""
    second = ticks_per_second(tick)
    groups: list[Far] = []
    low, high = blocks.span
    for _ in range(_ROUNDS if high - low < 2**63 else 0):  # wider ones are refused
        if high - low < _YEAR_S * second or (cut := _widest_gap(blocks, low, high, tick)) is None:
            break
        below, above = _group(blocks, Region(low, cut - 1)), _group(blocks, Region(cut, high))
        some = _apart(blocks, below, above, second, unit)
        if not some:
            break
        groups += some
        low, high = (above.low, above.high) if some[-1].main == above else (below.low, below.high)
    if not any(one.kind == "two_units" for one in groups):
        groups += _coarser(blocks, low, high, second, unit)
    return groups


def _widest_gap(blocks: Blocks, low: int, high: int, tick: Tick) -> int | None:
    """A time after the widest stretch of a year or more without an event, at or before the next one; None without."""
    start, width, bins = frequency_bins(low, high, tick, _BINS)
    inside = Region(low, high)

    def filled(k: int) -> Times:
        times = blocks.times(k)
        whole = low <= blocks.extents[k].time_min and blocks.extents[k].time_max <= high
        places = ((times if whole else times[inside.holds(times)]) - start) // width
        return np.flatnonzero(np.bincount(places, minlength=bins))

    places = np.unique(np.concatenate(blocks.walk(filled, blocks.within(inside))))
    gaps = np.diff(places) - 1
    if not len(gaps) or int(gaps.max()) * width < _YEAR_S * ticks_per_second(tick):
        return None
    return start + int(places[int(gaps.argmax()) + 1]) * width


def _group(blocks: Blocks, region: Region) -> Group:
    def extremes(k: int) -> tuple[int, int, int]:
        extent = blocks.extents[k]
        if region.low <= extent.time_min and extent.time_max <= region.high:
            return extent.time_min, extent.time_max, extent.rows
        times = blocks.times(k)
        times = times[region.holds(times)]
        return (int(times.min()), int(times.max()), len(times)) if len(times) else (region.high, region.low, 0)

    parts = blocks.walk(extremes, blocks.within(region))
    return Group(min(p[0] for p in parts), max(p[1] for p in parts), sum(p[2] for p in parts))


def _apart(blocks: Blocks, below: Group, above: Group, second: int, unit: TimeUnit | None) -> list[Far]:
    """Returns what one of two groups is, seen from the other; empty if they may be as they are."""
    few, many = (below, above) if below.events <= above.events else (above, below)
    units = _units(blocks, below, above, second, unit)
    rest = below.events - sum((one.own if one.region_is_coarse else one.main).events for one in units)
    if units and not rest:
        return units
    at_zero = -_YEAR_S * second <= below.low and below.high <= _YEAR_S * second
    odd_above = few is above and 10 * few.events <= many.events
    if at_zero and above.low - below.high >= 4 * _YEAR_S * second and not odd_above:
        region = Region(below.low, below.high, tuple(one.region for one in units))
        group = _group(blocks, region)
        return [*units, Far("clock_at_1970", region, replace(group, events=rest), above)]
    gap = above.low - below.high
    steady = gap >= (many.span if few.span == 0 else 10 * many.span)
    if not steady or 10 * few.events > blocks.events:
        return []
    kind: Literal["far_behind", "far_ahead"] = "far_behind" if few is below else "far_ahead"
    return [Far(kind, Region(few.low, few.high), few, many)]


def _units(blocks: Blocks, below: Group, above: Group, second: int, unit: TimeUnit | None) -> list[Far]:
    """The groups of `below` that lie among the times of `above` once they are taken for a coarser unit."""
    if unit in (None, "ps", "s") or below.low <= 0:
        return []
    slack = max(above.span, _DAY_S * second)
    units = []
    for coarser in TIME_UNITS[TIME_UNITS.index(unit) + 1 :]:
        factor = PS[coarser] // PS[unit]
        region = Region(-((slack - above.low) // factor), (above.high + slack) // factor)
        group = _group(blocks, region) if blocks.within(region) else Group(0, 0, 0)
        if not group.events:
            continue
        if group.events <= above.events:
            units.append(Far("two_units", region, group, above, coarser))
        else:
            rest = Region(above.low, above.high)
            units.append(Far("two_units", rest, above, group, coarser, region_is_coarse=False))
    return units


def _coarser(blocks: Blocks, low: int, high: int, second: int, unit: TimeUnit | None) -> list[Far]:
    """The coarser units of times in 1970, if in these all of them lie in plausible years."""
    if unit in (None, "ps", "s") or low <= 0 or high >= _YEAR_S * second:
        return []
    groups, rest = [], blocks.number(Region(low, high))
    for coarser in TIME_UNITS[TIME_UNITS.index(unit) + 1 :]:
        factor = PS[coarser] // PS[unit]
        region = Region(_PLAUSIBLE_S[0] * second // factor, _PLAUSIBLE_S[1] * second // factor)
        if blocks.within(region) and (group := _group(blocks, region)).events:
            groups.append(Far("unit", region, group, Group(low, high, 0), coarser))
            rest -= group.events
    return [] if rest else groups
