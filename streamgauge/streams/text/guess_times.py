"""Guesses which columns of text hold a time, and how it is written."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

import numpy as np

from streamgauge.base.arrow import Ints
from streamgauge.descriptions.source import TimeColumn
from streamgauge.streams.text.fields import READABLE
from streamgauge.streams.text.patterns import Reader, expression, yearless
from streamgauge.streams.text.times import times

#: share of the lines that a guessed separator, kind of number or form of time must fit
MOST = 0.95
#: unit -> range of the median of numbers that count in it from 1970 on: the years 1973 to 2286
_EPOCHS = {"s": (1e8, 1e10), "ms": (1e11, 1e13), "us": (1e14, 1e16), "ns": (1e17, 1e19)}
_COMPACT = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S", 17: "%Y%m%d%H%M%S%f", 20: "%Y%m%d%H%M%S%f"}
_DATES = (
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%m/%d/%y",
    "%d/%m/%y", "%d.%m.%y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%d/%b/%Y", "%b %d, %Y", "%B %d, %Y",
    "%b %d %Y", "%a, %d %b %Y", "%a %d %b %Y", "%A, %d %B %Y", "%A, %B %d, %Y", "%Y-%m-%d", "%Y %m %d",
)  # fmt: skip
_DAYS = ("%b %d", "%d %b", "%m-%d")  # without a year
_GAPS = (" ", "-", ", ", ":", "T", "_")
_CLOCKS = (
    "%H:%M:%S", "%H:%M:%S.%f", "%H:%M:%S,%f", "%H:%M:%S:%L", "%H.%M.%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p",
    "%I:%M:%S%p", "%I:%M%p", "%I:%M:%S.%f %p", "%I.%M.%S %p", "%I.%M.%S.%f %p", "%H%M%S", "%H %M %S", "%H %M",
    "%H",
)  # fmt: skip
_ZONES = ("%z", " %z", " %Z", " %z %Z")
_OTHERS = (
    "%a %b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S.%f %Y", "%a %b %d %H:%M:%S %Z %Y", "%a %b %d %H:%M:%S",
    "%b %d %H:%M:%S %Y",
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
_OFFSET = re.compile(r"[+-](0[0-9]|1[0-4]):?(00|15|30|45)\]?", re.ASCII)
#: names of columns of offsets, and of those that hold how long something took
_OFFSET_NAME = re.compile(r"off|zone|tz|utc|gmt", re.IGNORECASE)
_LONG_NAME = re.compile(r"dur|elapsed|took|delay|length|latency|runtime", re.IGNORECASE)
_CLOCK = re.compile(
    r"[0-9]{1,2}[:.][0-9]{2}([:.][0-9]{2}([.,:][0-9]{1,9})?)?(\s?[AP]\.?\s?M\.?)?\]?|[0-2][0-9]([0-5][0-9]){2}",
    re.IGNORECASE,
)
#: a whole date
_DATE = re.compile(r"\[?([0-9]{1,4}[-./ ][0-9A-Za-z]{1,9}[-./ ][0-9]{1,4},?|[0-9]{8})", re.ASCII)
#: a part of a date, or a date: the columns before that of a clock
_DAY = re.compile(rf"\[?[A-Za-z]{{3}},?|[0-9]{{1,4}},?|[0-9]{{2}}-[0-9]{{2}}|{_DATE.pattern}", re.ASCII)
_YEAR = re.compile(r"[12][0-9]{3}\]?", re.ASCII)
#: names of columns that hold the parts of a time
_PARTS = tuple(map(re.compile, ("year", "month", "day", "hours?", "min(ute)?s?", "sec(ond)?s?")))
#: characters of the longest text that is tried as a time
_LONGEST = 48


@dataclass(frozen=True)
class Calendar:
    """Facts about a file's times that are known before a look at them."""

    written_s: int  # when the file was written last; times without a year lie before
    year: int | None = None
    zone: str = "UTC"


@dataclass(frozen=True)
class Time:
    """Columns that can be the event time, and how it is written, as keys of `source.time`."""

    columns: tuple[str | int, ...]
    form: dict[str, object]
    doubt: str | None = None
    constant: bool = False
    days: bool = False  # no time of day

    @property
    def name(self) -> str:
        """The columns as the option --time names them."""
        return ",".join(map(str, self.columns))

    def keys(self) -> dict[str, object]:
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


def times_in(
    columns: Sequence[Sequence[str]], names: list[str] | None, only: str | None, calendar: Calendar
) -> list[Time]:
    """The columns that can be times, the likeliest first; only: the name or index of the column, or several."""
    named = [
        names[index] if names is not None and names.count(names[index]) == 1 else index for index in range(len(columns))
    ]
    candidates: list[Time] = []
    for index, values in enumerate(columns):
        if only is not None and only not in (str(named[index]), str(index)):
            continue
        filled = [value for value in values if value]
        if len(filled) < MOST * len(values) or not filled:
            continue
        hinted = only is not None or _hint(named[index]) < len(_NAMES)
        if sum(map(bool, map(NUMBER.fullmatch, filled[:100]))) >= MOST * len(filled[:100]):
            candidates += _numbers(named[index], filled, hinted=hinted)
        else:
            candidates += _texts((named[index],), filled, calendar)
    for parts in dict.fromkeys((*_by_name(named), *_joinable(columns, named))):
        if only is None or only in (",".join(str(named[k]) for k in parts), ",".join(map(str, parts))):
            joined = [" ".join(each) for each in zip(*(columns[k] for k in parts), strict=True)]
            candidates += _texts(tuple(named[k] for k in parts), joined, calendar)
    joint = [set(time.columns) for time in candidates]
    whole = [time for time in candidates if not any(set(time.columns) < other for other in joint)]
    return sorted(whole, key=lambda time: time.rank)


def _by_name(names: Sequence[str | int]) -> Iterator[tuple[int, ...]]:
    """Yields the columns that are named year, month, day and the like, if these three are there."""
    lower = [str(name).lower() for name in names]
    places = [next((k for k, name in enumerate(lower) if part.fullmatch(name)), None) for part in _PARTS]
    known = [k for k in places if k is not None]
    if None not in places[:3]:
        yield tuple(known)


def _joinable(columns: Sequence[Sequence[str]], names: Sequence[str | int]) -> Iterator[tuple[int, ...]]:
    """Yields columns that may be parts of a time: up to four of a day's, a clock's, those of a year and an offset."""

    def all_shaped(shape: re.Pattern[str]) -> list[int]:
        return [k for k, values in enumerate(columns) if values and all(map(shape.fullmatch, values[:20]))]

    clocks = [index for index in all_shaped(_CLOCK) if not _LONG_NAME.search(str(names[index]))]
    offsets = [k for k in all_shaped(_OFFSET) if isinstance(names[k], int) or _OFFSET_NAME.search(str(names[k]))]
    dates = all_shaped(_DATE)
    days, years = set(all_shaped(_DAY)), all_shaped(_YEAR)
    for clock in clocks:
        before = [range(clock - count, clock) for count in (1, 2, 3, 4)]
        parted = [(*some, clock) for some in before if some.start >= 0 and days.issuperset(some)]
        parted += [(date, clock) for date in sorted(dates, key=lambda date: abs(date - clock))[:3] if date != clock]
        for parts in parted:
            yield from ((*parts, more) for more in (clock + 1,) if more in years or more in offsets)
            yield parts
    yield from ((index - 1, index) for index in offsets if index)


def _numbers(name: str | int, values: list[str], *, hinted: bool) -> Iterator[Time]:
    constant = len(set(values)) == 1 < len(values)
    known = next((value for value in values if NUMBER.fullmatch(value)), "").partition(".")
    pattern = _COMPACT.get(len(known[0])) if known[0][:2] in ("19", "20") else None
    pattern = f"{pattern}.%f" if pattern and known[2] else pattern
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


def _texts(names: tuple[str | int, ...], values: list[str], calendar: Calendar) -> Iterator[Time]:
    zone = {"zone": calendar.zone} if calendar.zone != "UTC" else {}
    constant = len(set(values)) == 1 < len(values)
    if reads_iso(values[:5]) and share(TimeColumn(column=0), values) >= MOST:
        yield Time(names, dict(zone), constant=constant, days=all(len(value) == 10 for value in values))
        return
    fit: dict[bytes, tuple[str, float]] = {}  # of patterns that read the same times, the first, and their share
    for pattern in patterns_of(values[:5]):
        read, good = _read(_column(pattern, 1972), values)
        if good >= MOST:
            fit.setdefault(read.tobytes(), (pattern, good))
    best = max((good for _, good in fit.values()), default=0.0)
    patterns = [pattern for pattern, good in fit.values() if good == best]
    doubts = [f"{patterns[0]} and {patterns[1]} read all times; which is meant?"] if len(patterns) > 1 else []
    for pattern in patterns:
        reasons = list(doubts)
        year = calendar.year or (_year(pattern, values[0], calendar.written_s) if yearless(pattern) else None)
        dated = {"year": year} if yearless(pattern) else {}
        if dated and calendar.year is None:
            reasons.append(f"times have no year: the first is taken for one of {year}, as the file's own date is")
        yield Time(names, {"format": pattern, **dated, **zone}, "; ".join(reasons) or None, constant, pattern in _DATES)


def _year(pattern: str, first: str, written_s: int) -> int:
    """The latest year in which that time lies before the file was written, a day apart for other zones."""
    last = datetime.fromtimestamp(written_s, UTC).year
    for year in range(last, last - 9, -1):
        try:
            if Reader(pattern, "UTC", year)(first) <= (written_s + 86400) * 10**9:
                return year
        except ValueError:  # the 29th of February in a year that has none
            continue
    return last


def _column(pattern: str, year: int) -> TimeColumn:
    return TimeColumn(column=0, format=pattern, year=year if yearless(pattern) else None)


def reads_iso(values: Sequence[str]) -> bool:
    """True if most of these few texts are ISO-8601."""
    short = [value for value in values if 8 <= len(value) <= _LONGEST]
    return len(short) >= MOST * len(values) > 0 and share(TimeColumn(column=0), short) >= 0.5


def patterns_of(values: Sequence[str]) -> list[str]:
    """Patterns that read one of these few texts."""
    fitting: dict[str, None] = {}
    for value in values:
        if len(value) <= _LONGEST and sum(map(str.isdigit, value)) >= 4:
            begin, end = "[" * value.startswith("["), "]" * value.endswith("]")
            inner = value.removeprefix("[").removesuffix("]")
            fitting |= dict.fromkeys(f"{begin}{pattern}{end}" for pattern in _written(inner) if _fits(pattern, inner))
    return list(fitting)


def _written(text: str) -> Iterator[str]:
    """Yields patterns that may read the text, as their parts do."""
    clocks = [clock for clock in _CLOCKS if expression(clock).search(text)]
    zones = ["", *(zone for zone in _ZONES if expression(zone).search(text))]
    for date in (*_DATES, *_DAYS):
        if not expression(date).match(text):
            continue
        yield from (
            f"{date}{gap}{clock}{zone}" for clock in clocks for gap in _GAPS if gap.strip() in text for zone in zones
        )
        if date in _DATES:
            yield date
    if clocks:
        yield from _OTHERS


@cache
def _reader(pattern: str) -> Reader:
    return Reader(pattern, "UTC", 1972)  # a leap year


def _fits(pattern: str, value: str) -> bool:
    try:
        _reader(pattern)(value)
    except ValueError:
        return False
    return True


def share(column: TimeColumn, values: Sequence[str]) -> float:
    return _read(column, values)[1]


def _read(column: TimeColumn, values: Sequence[str]) -> tuple[Ints, float]:
    """(nanoseconds, share of values that are times of that column)."""
    encoded = [value.encode() for value in values]
    lengths = np.array([len(value) for value in encoded], np.int64)
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)[:-1]))
    read, codes = times(column, "ns", np.frombuffer(b"".join(encoded) or b" ", np.uint8), starts, lengths)
    return read, float(np.mean(codes == READABLE))


def _hint(name: str | int) -> int:
    """Rank of a name as that of an event time: 0 for the most typical, len(_NAMES) for an unknown one."""
    if isinstance(name, int):
        return len(_NAMES)
    last = name.split(".")[-1]
    ranks = (k for k, expression in enumerate(_NAMES) if re.search(expression, last, re.IGNORECASE))
    return next(ranks, len(_NAMES))
