"""Reads time fields as int64 ticks, many fields at once.

Texts of a known width are read by their columns of digits; every other is read once per distinct text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from itertools import product
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import Ints, Mask, int64s
from streamgauge.base.units import PS, Tick, TimeUnit
from streamgauge.descriptions.source import TimeColumn
from streamgauge.streams.text.fields import (
    INT64_MAX,
    OUT_OF_RANGE,
    READABLE,
    UNREADABLE,
    Bytes,
    by_unique,
    widths,
    windows,
)
from streamgauge.streams.text.numbers import decimals
from streamgauge.streams.text.patterns import KINDS, Piece, Reader, epoch_seconds, pieces, yearless

Template = tuple[Piece, ...]
_NS_LIMIT = INT64_MAX // 10**9 - 1  # seconds that surely fit as nanoseconds
_RULES_END = 2**31 - 10**8  # Arrow knows a zone's transitions up to 2037, not its rule for the years after
_BILLION = 10**9


def times(
    column: TimeColumn, tick: Tick, buffer: Bytes, starts: Ints, lengths: Ints, since_ns: int | None = None
) -> tuple[Ints, Bytes]:
    """(ticks, codes) of fields; codes: READABLE, UNREADABLE, OUT_OF_RANGE. Parts of a tick are rounded down.

    since_ns: a time without a year is one of the year from here on; None: of the column's year.
    """
    if column.unit is not None:
        return decimals(buffer, starts, lengths, *factors(column.unit, tick))
    if since_ns is not None and without_year(column):
        values, codes = _in_year(column, buffer, starts, lengths, since_ns)
    else:
        values, codes = _moments(column, buffer, starts, lengths, column.year or 1970)
    if tick == "ps":  # an arrival time that is a datetime, beside an event time in ps
        codes[np.abs(values) > INT64_MAX // 1000] = OUT_OF_RANGE
        values = np.where(codes == READABLE, values, 0) * 1000
    return values, codes


def factors(unit: TimeUnit, tick: Tick) -> tuple[int, int]:
    """(ticks in a unit, units in a tick); the smaller of both is 1."""
    return max(PS[unit] // PS[tick], 1), max(PS[tick] // PS[unit], 1)


def without_year(column: TimeColumn) -> bool:
    return column.format is not None and yearless(column.format)


def _in_year(column: TimeColumn, buffer: Bytes, starts: Ints, lengths: Ints, since_ns: int) -> tuple[Ints, Bytes]:
    """(nanoseconds, codes) of times without a year, each in the year in which it follows that instant."""
    first = int(np.datetime64(since_ns, "ns").astype("datetime64[Y]").astype(int)) + 1970
    values, codes = _moments(column, buffer, starts, lengths, first)
    later, readable = _moments(column, buffer, starts, lengths, first + 1)
    before = (codes != READABLE) | (values < since_ns)
    # the 29th of February is read in one of the two years at most
    after = before & (readable == READABLE) & (later < since_ns + 366 * 86400 * _BILLION)
    codes[before & (codes == READABLE)] = UNREADABLE
    return np.where(after, later, values), np.where(after, readable, codes)


def _moments(column: TimeColumn, buffer: Bytes, starts: Ints, lengths: Ints, year: int) -> tuple[Ints, Bytes]:
    """(nanoseconds, codes) of fields that are datetimes; year: of those whose pattern has none."""
    values = np.zeros(len(starts), np.int64)
    codes = np.full(len(starts), UNREADABLE, np.uint8)
    templates = _templates(column.format)
    for length in widths(lengths, max(templates, default=0)):
        here = np.flatnonzero(lengths == length)
        for template in templates.get(length, ()):
            seconds, nanoseconds, good = _by_width(template, windows(buffer, starts[here], length), column.zone, year)
            values[here[good]] = seconds[good] * _BILLION + nanoseconds[good]
            codes[here[good]] = READABLE
            here = here[~good]
            if not len(here):
                break
    rest = np.flatnonzero((codes == UNREADABLE) & (lengths > 0))
    if len(rest):
        read = _reader(column.format, column.zone, year)
        values[rest], codes[rest] = by_unique(buffer, starts[rest], lengths[rest], read)
    return values, codes


def _by_width(template: Template, rows: Bytes, zone: str, year_given: int) -> tuple[Ints, Ints, Mask]:
    """(seconds since the epoch, nanoseconds, readable) of texts (rows of bytes) that are as wide as the template."""
    good: Mask = np.ones(len(rows), bool)
    got: dict[str, Ints] = {}
    at = 0
    for piece in template:
        if not piece.kind:
            column = rows[:, at]
            good &= np.logical_or.reduce([column == ord(character) for character in piece.text])
            at += 1
            if piece.text == "+-":
                got["sign"] = np.where(column == ord("-"), -1, 1)
            continue
        value = np.zeros(len(rows), np.int32)
        for column in rows.T[at : at + _width(piece)]:
            digit = column - np.uint8(48)
            good &= digit <= 9
            value *= 10
            value += digit
        at += _width(piece)
        got[piece.kind] = value.astype(np.int64)
        if piece.kind == "f":
            got["f"] *= 10 ** (9 - _width(piece))
    none = np.zeros(len(rows), np.int64)
    year, month, day = got.get("Y", none + year_given), got.get("m", none + 1), got.get("d", none + 1)
    hour, minute, second = got.get("H", none), got.get("M", none), got.get("S", none)
    good &= (month >= 1) & (month <= 12) & (hour < 24) & (minute < 60) & (second < 60) & (year >= 1)
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    first = months.astype("datetime64[D]").astype(np.int64)
    good &= (day >= 1) & (day <= (months + 1).astype("datetime64[D]").astype(np.int64) - first)
    seconds = (first + day - 1) * 86400 + (hour * 3600 + minute * 60 + second)
    if "sign" in got:
        good &= (got["OH"] < 24) & (got.get("OM", none) < 60)
        seconds -= got["sign"] * (got["OH"] * 3600 + got.get("OM", none) * 60)
    elif template[-1].text != "Zz" and zone != "UTC":
        good &= seconds < _RULES_END
        seconds = _in_zone(np.where(good, seconds, 0), zone)
    good &= np.abs(seconds) <= _NS_LIMIT
    return seconds, got.get("f", none) + got.get("L", none) * 10**6, good


def _in_zone(local: Ints, zone: str) -> Ints:
    """Seconds since the epoch of local times: the earlier of two; in a gap, with the offset before it."""
    naive = int64s(local).cast(pa.timestamp("s"))
    known = pc.assume_timezone(naive, zone, ambiguous="earliest", nonexistent="earliest")
    # inside a gap `known` is the last second before it: its offset holds
    offset = pc.local_timestamp(known).cast(pa.int64()).to_numpy() - known.cast(pa.int64()).to_numpy()
    shifted: Ints = local - offset
    return shifted


def _width(piece: Piece) -> int:
    return piece.width or (KINDS[piece.kind][1] if piece.kind in KINDS else 2)


@lru_cache(maxsize=64)
def _templates(pattern: str | None) -> dict[int, list[Template]]:
    """Templates of a pattern by total width; without a pattern, those of the usual forms of ISO-8601."""
    by_width: dict[int, list[Template]] = {}
    for template in _iso_templates() if pattern is None else _of_any_fraction(pieces(pattern)):
        if all(_width(piece) or not piece.kind for piece in template):
            by_width.setdefault(sum(_width(p) if p.kind else 1 for p in template), []).append(template)
    return by_width


def _of_any_fraction(template: Template) -> list[Template]:
    """The template, one for each number of digits that %f may have."""
    if not any(piece.kind == "f" and not piece.width for piece in template):
        return [template]
    return [
        tuple(Piece("f", width=digits) if piece.kind == "f" else piece for piece in template) for digits in range(1, 10)
    ]


def _iso_templates() -> list[Template]:
    date = pieces("%Y-%m-%d")
    either = (Piece("", "T "),)
    minutes = (*date, *either, *pieces("%H:%M"))
    seconds = (*date, *either, *pieces("%H:%M:%S"))
    dot = Piece("", ".,")
    clocks = [minutes, seconds, *((*seconds, dot, Piece("f", width=digits)) for digits in range(1, 10))]
    sign, colon, hours, rest = Piece("", "+-"), Piece("", ":"), Piece("OH"), Piece("OM")
    zones = [(), (Piece("", "Zz"),), (sign, hours, colon, rest), (sign, hours, rest), (sign, hours)]
    return [date, *((*clock, *zone) for clock, zone in product(clocks, zones))]


@lru_cache(maxsize=64)
def _reader(pattern: str | None, zone: str, year: int) -> Callable[[str], int]:
    return Reader(pattern, zone, year) if pattern is not None else _IsoReader(zone)


class _IsoReader:
    """Reads ISO-8601 as datetime.fromisoformat does, with a fraction of any length; refuses what that takes besides.

    fromisoformat takes any character between date and time, and a fraction after a colon: 29:5 would be 29.5 s.
    """

    _FORM = re.compile(
        r"[0-9W-]{7,10}([T ][0-9]{2}(:?[0-9]{2}(:?[0-9]{2}([.,][0-9]+)?)?)?(Z|[+-][0-9]{2}(:?[0-5][0-9]){0,2})?)?",
        re.ASCII | re.IGNORECASE,
    )
    _FRACTION = re.compile(r"(.+[T ][0-9]{2}:?[0-9]{2}:?[0-9]{2})[.,]([0-9]+)(.*)", re.ASCII)

    def __init__(self, zone: str) -> None:
        self._zone = ZoneInfo(zone)

    def __call__(self, text: str) -> int:
        """Nanoseconds since the epoch; finer digits are dropped. Raises ValueError."""
        if not self._FORM.fullmatch(text):
            raise ValueError(text)
        match = self._FRACTION.fullmatch(text)
        moment = datetime.fromisoformat(match[1] + match[3] if match else text.replace("z", "Z"))
        nanoseconds = int(match[2][:9].ljust(9, "0")) if match else moment.microsecond * 1000
        shift = moment.utcoffset()
        offset = None if shift is None else shift.days * 86400 + shift.seconds
        return epoch_seconds(moment.replace(tzinfo=None), offset, self._zone) * _BILLION + nanoseconds
