"""Guesses which columns of text hold a time, and how it is written."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

import numpy as np

from streamgauge.config import TimeColumn
from streamgauge.text.fields import READABLE
from streamgauge.text.patterns import Reader, pieces, yearless
from streamgauge.text.times import times

#: share of the lines that a guessed separator, kind of number or form of time must fit
MOST = 0.95
#: median of numbers -> the unit in which they count from 1970 on, if they lie between 1973 and 2286
_EPOCHS = {"s": (1e8, 1e10), "ms": (1e11, 1e13), "us": (1e14, 1e16), "ns": (1e17, 1e19)}
_COMPACT = {14: "%Y%m%d%H%M%S", 12: "%Y%m%d%H%M", 8: "%Y%m%d"}
_DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y%m%d", "%m/%d/%y", "%d %b %Y")
_CLOCKS = (
    "%H:%M:%S", "%H:%M:%S.%f", "%H:%M:%S,%f", "%H:%M:%S:%L", "%H.%M.%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p"
)  # fmt: skip
_PATTERNS = (
    *(f"{date}{gap}{clock}" for date in _DATES for clock in _CLOCKS for gap in (" ", "-", ", ")),
    *_DATES, "%Y-%m-%d %I:%M:%S %p", "%Y-%m-%d-%H:%M:%S", "%Y-%m-%d %H.%M.%S", "%Y%m%dT%H%M%S",
    "%d/%b/%Y:%H:%M:%S %z", "[%d/%b/%Y:%H:%M:%S %z]", "[%d/%b/%Y:%H:%M:%S", "%d/%b/%Y:%H:%M:%S",
    "%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S %z", "%b %d %H:%M:%S", "%b %d %H:%M:%S.%f", "%b %d %Y %H:%M:%S",
    "%b %d, %Y %I:%M:%S %p", "%b %d, %Y, %I:%M:%S %p",
)  # fmt: skip
#: names of event times, the most telling first
_NAMES = (
    r"event.?time|occurr?ed|happened", r"time.?stamp|^ts$", r"^(date)?time$|^t$", r"time|stamp",
    r"date|_at$|when|created", r"(^|_)ts($|_)",
)  # fmt: skip
#: names of times at which somebody handled an event, which is later than it happened
_HANDLED = re.compile(
    r"(^|_)load|ingest|recei?v|process|updat|modif|insert|import|arriv|sync|fetch|crawl|index|stored|written|expir",
    re.IGNORECASE,
)
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_OFFSET = re.compile(r"([+-])([0-9]{2})00\]?", re.ASCII)
_CLOCK = re.compile(r"[0-9]{1,2}[:.][0-9]{2}([:.][0-9]{2}([.,:][0-9]{1,9})?)?(\s?[AP]M)?", re.ASCII | re.IGNORECASE)
#: a part of a date, or a date: the columns before that of a clock
_DAY = re.compile(r"[A-Za-z]{3},?|[0-9]{1,4}([-./ ][0-9A-Za-z]{1,9}[-./ ][0-9]{1,4})?,?|[0-9]{8}", re.ASCII)
#: characters of the longest text that is tried as a time
_LONGEST = 48


@dataclass(frozen=True)
class Time:
    """Columns that can be the event time, and how it is written, as keys of `source.time`."""

    columns: tuple[str | int, ...]
    form: dict[str, Any]
    doubt: str | None = None
    constant: bool = False
    days: bool = False  # no time of day

    @property
    def name(self) -> str:
        """The columns as the option --time names them."""
        return ",".join(map(str, self.columns))

    def keys(self) -> dict[str, Any]:
        where = {"column": self.columns[0]} if len(self.columns) == 1 else {"columns": list(self.columns)}
        return {**where, **self.form}

    @property
    def rank(self) -> tuple[bool, bool, int, bool, bool, bool]:
        """Sorts by likeliness of being the event time, the likeliest first."""
        handled = any(isinstance(name, str) and _HANDLED.search(name.split(".")[-1]) for name in self.columns)
        return (
            self.constant,
            handled,
            min(map(_hint, self.columns)),
            self.days,
            len(self.columns) == 1,
            bool(self.doubt),
        )


def times_in(columns: Sequence[Sequence[str]], names: list[str] | None, only: str | None, written_s: int) -> list[Time]:
    """The columns that can be times, the likeliest first; only: the name or index of the column, or several.

    written_s: when the file was written last; times without a year lie before.
    """
    named = [
        names[index] if names is not None and names.count(names[index]) == 1 else index for index in range(len(columns))
    ]
    found: list[Time] = []
    for index, values in enumerate(columns):
        if only is not None and only not in (str(named[index]), str(index)):
            continue
        filled = [value for value in values if value]
        if len(filled) < MOST * len(values) or not filled:
            continue
        hinted = only is not None or _hint(named[index]) < len(_NAMES)
        if all(map(NUMBER.fullmatch, filled[:100])):
            found += _numbers(named[index], filled, hinted=hinted)
        else:
            found += _texts((named[index],), filled, columns[index + 1] if index + 1 < len(columns) else (), written_s)
    for parts in _joinable(columns):
        if only is None or only in (",".join(str(named[k]) for k in parts), ",".join(map(str, parts))):
            joined = [" ".join(each) for each in zip(*(columns[k] for k in parts), strict=True)]
            found += _texts(tuple(named[k] for k in parts), joined, (), written_s)
    joint = {name for time in found if len(time.columns) > 1 for name in time.columns}
    whole = [time for time in found if not (time.days and len(time.columns) == 1 and time.columns[0] in joint)]
    return sorted(whole, key=lambda time: time.rank)


def _joinable(columns: Sequence[Sequence[str]]) -> Iterator[tuple[int, ...]]:
    """Yields columns that may be parts of a time: up to three of a day's, and a clock's after or beside them."""
    shapes = ["clock" if _shaped(_CLOCK, values) else "day" if _shaped(_DAY, values) else "" for values in columns]
    for clock in [index for index, shape in enumerate(shapes) if shape == "clock"]:
        for count in (1, 2, 3):
            before = range(clock - count, clock)
            if before.start >= 0 and all(shapes[k] == "day" for k in before):
                yield (*before, clock)
        if clock + 1 < len(columns) and shapes[clock + 1] == "day":
            yield clock + 1, clock


def _shaped(shape: re.Pattern[str], values: Sequence[str]) -> bool:
    return bool(values) and all(map(shape.fullmatch, values[:20]))


def _numbers(name: str | int, values: list[str], *, hinted: bool) -> Iterator[Time]:
    constant = len(set(values)) == 1 < len(values)
    pattern = _COMPACT.get(len(values[0])) if values[0][:2] in ("19", "20") else None
    if pattern is not None and share(TimeColumn(column=0, format=pattern), values) >= MOST:
        yield Time((name,), {"format": pattern}, constant=constant)
        return
    numbers = [float(value) for value in values if NUMBER.fullmatch(value)]
    middle = statistics.median(numbers)
    for unit, (least, most) in _EPOCHS.items():
        if least <= middle < most:
            yield Time((name,), {"unit": unit}, constant=constant)
            return
    if hinted:
        doubt = "the numbers are no time since 1970 in any unit; seconds are assumed"
        yield Time((name,), {"unit": "s"}, doubt, constant)


def _texts(names: tuple[str | int, ...], values: list[str], following: Sequence[str], written_s: int) -> Iterator[Time]:
    constant = len(set(values)) == 1 < len(values)
    if reads_iso(values[:5]) and share(TimeColumn(column=0), values) >= MOST:
        yield Time(names, {}, constant=constant, days=all(len(value) == 10 for value in values))
        return
    fit = [pattern for pattern in patterns_of(values[:5]) if share(_column(pattern, 1972), values) >= MOST]
    doubts = [f"{fit[0]} and {fit[1]} read all times; which is meant?"] if len(fit) > 1 else []
    for pattern in fit:
        told, form = list(doubts), {"format": pattern}
        if pattern.startswith("[") and (zone := _zone(following)):
            form["zone"] = zone
            told.append(
                "the offset of the first lines is taken for all; another one later, as in summer, reads as disorder"
            )
        dated = {"year": _year(pattern, values[0], written_s)} if yearless(pattern) else {}
        if dated:
            told.append(f"times have no year: the first is taken for one of {dated['year']}, as the file's own date is")
        yield Time(names, form | dated, "; ".join(told) or None, constant, pattern in _DATES)


def _year(pattern: str, first: str, written_s: int) -> int:
    """The latest year in which that time lies before the file was written, a day apart for other zones."""
    year = datetime.fromtimestamp(written_s, UTC).year
    try:
        later = Reader(pattern, "UTC", year)(first) > (written_s + 86400) * 10**9
    except ValueError:  # the 29th of February in a year that has none
        later = True
    return year - later


def _column(pattern: str, year: int) -> TimeColumn:
    return TimeColumn(column=0, format=pattern, year=year if yearless(pattern) else None)


def reads_iso(values: Sequence[str]) -> bool:
    """True if most of these few texts are ISO-8601."""
    short = [value for value in values if 8 <= len(value) <= _LONGEST]
    return len(short) >= MOST * len(values) > 0 and share(TimeColumn(column=0), short) >= 0.5


def patterns_of(values: Sequence[str]) -> list[str]:
    """Patterns that read one of these few texts."""
    tried = [value for value in values if len(value) <= _LONGEST and sum(map(str.isdigit, value)) >= 4]
    found: dict[str, None] = {}
    for value in tried:
        letters = set(value)
        found |= dict.fromkeys(pattern for pattern in _PATTERNS if _marks(pattern) <= letters and _fits(pattern, value))
    return [pattern for pattern in _PATTERNS if pattern in found]


@cache
def _marks(pattern: str) -> frozenset[str]:
    """The characters that stand in every text of a pattern; blanks are of many kinds."""
    return frozenset(piece.text for piece in pieces(pattern) if not piece.kind and piece.text != " ")


@cache
def _reader(pattern: str) -> Reader:
    return Reader(pattern, "UTC", 1972)  # a leap year


def _fits(pattern: str, value: str) -> bool:
    try:
        _reader(pattern)(value)
    except ValueError:
        return False
    return True


def _zone(following: Sequence[str]) -> str | None:
    """The zone of a time in brackets whose offset is the next field, as web servers write it: the same in all lines."""
    offsets = {match[0]: match for match in map(_OFFSET.fullmatch, following) if match}
    if len(offsets) != 1:
        return None
    (match,) = offsets.values()
    hours = int(match[2])
    return f"Etc/GMT{'-' if match[1] == '+' else '+'}{hours}" if hours else None


def share(column: TimeColumn, values: Sequence[str]) -> float:
    """Share of values that are read as times of that column."""
    encoded = [value.encode() for value in values]
    lengths = np.array([len(value) for value in encoded], np.int64)
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)[:-1]))
    _, codes = times(column, "ns", np.frombuffer(b"".join(encoded) or b" ", np.uint8), starts, lengths)
    return float(np.mean(codes == READABLE))


def _hint(name: str | int) -> int:
    """Rank of a name as that of an event time: 0 for the most typical, len(_NAMES) for an unknown one."""
    if isinstance(name, int):
        return len(_NAMES)
    last = name.split(".")[-1]
    found = (k for k, expression in enumerate(_NAMES) if re.search(expression, last, re.IGNORECASE))
    return next(found, len(_NAMES))
