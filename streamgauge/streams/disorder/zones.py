"""Hours that a time zone has twice, when its clocks are put back, or skips, when they are put forward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEP_S = 7 * 86400
#: the years that `datetime` and the zones reach, in seconds since the epoch
_FIRST_S, _LAST_S = -60_000_000_000, 250_000_000_000


@dataclass(frozen=True)
class Repeated:
    """Local times that occur twice: first from begin to between, then until end, in seconds since the epoch."""

    begin_s: int
    between_s: int
    end_s: int
    local: str


def offset_s(zone: str, at_s: int) -> int:
    """Offset of the zone east of UTC at that second since the epoch."""
    offset = (_EPOCH + timedelta(seconds=min(max(at_s, _FIRST_S), _LAST_S))).astimezone(ZoneInfo(zone)).utcoffset()
    return 0 if offset is None else offset.days * 86400 + offset.seconds


def repeated_hours(zone: str, low_s: int, high_s: int) -> list[Repeated]:
    """The repeated local times whose first occurrence lies, at least in part, in [low, high]."""
    hours: list[Repeated] = []
    for change, offset, after in _changes(zone, low_s, high_s):
        begin, end = change - (offset - after), change + (offset - after)
        if after < offset and begin <= high_s and change > low_s:
            first, last = (_EPOCH + timedelta(seconds=second + offset) for second in (begin, change))
            hours.append(Repeated(begin, change, end, f"{first:%Y-%m-%d %H:%M} and {last:%H:%M}"))
    return hours


def skipped_hours(zone: str, low_s: int, high_s: int) -> list[tuple[int, int]]:
    """(first, end) in local seconds of what the zone skips, if its times, as they are read, lie in [low, high]."""
    return [
        (change + offset, change + after)
        for change, offset, after in _changes(zone, low_s, high_s)
        if after > offset and change <= high_s and change + after - offset > low_s
    ]


def _changes(zone: str, low_s: int, high_s: int) -> Iterator[tuple[int, int, int]]:
    """Yields each change of the zone's offset from a week before `low_s` on: its second, and the offsets around it."""
    at, offset = low_s - _STEP_S, offset_s(zone, low_s - _STEP_S)
    while at < high_s + 86400:
        following = at + _STEP_S
        after = offset_s(zone, following)
        if after != offset:
            yield _change(zone, at, following, offset), offset, after
        at, offset = following, after


def _change(zone: str, low_s: int, high_s: int, offset: int) -> int:
    """The first second after `low_s` at which the zone's offset is no longer `offset`."""
    while high_s - low_s > 1:
        middle = (low_s + high_s) // 2
        low_s, high_s = (middle, high_s) if offset_s(zone, middle) == offset else (low_s, middle)
    return high_s
