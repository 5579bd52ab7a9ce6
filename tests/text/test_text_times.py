"""Times: every way of writing one against Python's own readers, exact to the tick."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.base.errors import UserError
from streamgauge.base.units import PS, Tick
from streamgauge.config import TimeColumn
from streamgauge.streams.text.fields import OUT_OF_RANGE, UNREADABLE
from streamgauge.streams.text.numbers import integers
from streamgauge.streams.text.patterns import Reader, pieces
from streamgauge.streams.text.times import times

anytime = settings(deadline=None)  # the machine is shared
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BAD, BEYOND = "unreadable", "out of range"


def laid_out(texts: list[str]) -> tuple[Any, Any, Any]:
    """The texts one after the other, as fields of a buffer."""
    parts = [text.encode() for text in texts]
    lengths = np.array([len(part) for part in parts], np.int64)
    return np.frombuffer(b"".join(parts) + b"\n", np.uint8), np.cumsum(lengths) - lengths, lengths


def shown(values: Any, codes: Any) -> list[int | str]:
    names = {UNREADABLE: BAD, OUT_OF_RANGE: BEYOND}
    return [names.get(code, value) for value, code in zip(values.tolist(), codes.tolist(), strict=True)]


def read(texts: list[str], tick: Tick = "ns", **column: Any) -> list[int | str]:
    return shown(*times(TimeColumn(column=0, **column), tick, *laid_out(texts)))


def nanoseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1) * 1000


def fits(value: int) -> int | str:
    return value if -(2**63) <= value < 2**63 else BEYOND


numerals = st.one_of(
    st.integers(-(2**64), 2**64).map(str),
    st.integers(10**18, 10**19).map(str),
    st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1]).map(str),
    st.text("0123456789-+. e", max_size=24),
)


def as_integer(text: str) -> int | str:
    if not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", text):
        return BAD
    value = Decimal(text)
    if value.is_zero() or abs(value.adjusted()) > 400:
        return 0 if value.is_zero() else BEYOND if value.adjusted() > 0 else BAD
    return fits(int(value)) if Fraction(value).denominator == 1 else BAD


@anytime
@given(st.lists(numerals, max_size=8))
def test_integers_are_those_of_python_within_64_bits(texts: list[str]) -> None:
    assert shown(*integers(*laid_out(texts))) == [as_integer(text) for text in texts]


@anytime
@given(
    st.lists(
        st.tuples(st.integers(-(10**20), 10**20), st.none() | st.text("0123456789", min_size=1, max_size=14)),
        max_size=8,
    ),
    st.sampled_from(["ps", "ns", "us", "ms", "s"]),
    st.sampled_from(["ns", "ps"]),
)
def test_numbers_of_any_unit_are_exact_and_rounded_down_to_the_tick(
    numbers: list[tuple[int, str | None]], unit: str, tick: Tick
) -> None:
    texts = [f"{whole}" if part is None else f"{whole}.{part}" for whole, part in numbers]
    expected = [fits(floor(Fraction(text) * PS[unit] / PS[tick])) for text in texts]
    assert read(texts, tick, unit=unit) == expected


@anytime
@given(
    st.lists(st.decimals(allow_nan=False, allow_infinity=False), max_size=8), st.sampled_from(["ps", "ns", "ms", "s"])
)
def test_numbers_with_exponents_are_those_of_decimal(numbers: list[Decimal], unit: str) -> None:
    texts = [write.format(number) for number, write in zip(numbers, ["{}", "{:e}", "{:E}"] * 3, strict=False)]
    small = [max(min(number.adjusted(), 400), -400) for number in numbers]  # Fraction writes all digits out
    exact = [
        Fraction(number if abs(number.adjusted()) <= 400 else number.scaleb(power - number.adjusted()))
        for number, power in zip(numbers, small, strict=True)
    ]
    expected = [fits(floor(value * PS[unit] / PS["ns"])) for value in exact]
    assert read(texts, unit=unit) == expected


def test_an_exponent_costs_nothing() -> None:
    texts = ["1e999999999", "-1e999999999", "1e-999999999", "-1e-999999999", "0e999999999", "1e5", "17E8", "2.5e-1"]
    assert read(texts, unit="s") == [BEYOND, BEYOND, 0, -1, 0, 10**14, 17 * 10**17, 25 * 10**7]
    assert shown(*integers(*laid_out(texts))) == [BEYOND, BEYOND, BAD, BAD, 0, 10**5, 17 * 10**8, BAD]


def test_nineteen_digits_keep_the_last_one() -> None:
    assert read(["1424696631913248572", "-1424696631913248571"], unit="ns") == [
        1424696631913248572,
        -1424696631913248571,
    ]
    assert read(["9223372036854775807", "9223372036854775808"], unit="ns") == [9223372036854775807, BEYOND]
    assert read(["10629342490369879"], "ps", unit="ps") == [10629342490369879]
    assert read(["9223372036", "9223372037", "9223372036.854775807"], unit="s") == [
        9223372036 * 10**9,
        BEYOND,
        2**63 - 1,
    ]


def test_a_number_with_blanks_is_unreadable() -> None:
    assert read([" 12", "12 ", "1e", "", "-", "1_0", "0x1", ".5", "5.", "٣", "e5", "1e5.0"], unit="s") == [BAD] * 12


def test_milliseconds_without_leading_zeros_are_a_number_not_a_fraction() -> None:
    texts = [f"20171223-22:15:29:{n}" for n in ("606", "29", "6", "006", "1000", "")]
    second = nanoseconds(datetime(2017, 12, 23, 22, 15, 29, tzinfo=UTC))
    expected = [second + ms * 10**6 for ms in (606, 29, 6, 6)]
    assert read(texts, format="%Y%m%d-%H:%M:%S:%L") == [*expected, BAD, BAD]
    assert read(texts[:3], format="%Y%m%d-%H:%M:%S:%f")[1] == second + 290 * 10**6


moments = st.datetimes(datetime(1678, 1, 1), datetime(2262, 1, 1))
PATTERNS = [
    ("%Y-%m-%d %H:%M:%S", "yyyy-MM-dd HH:mm:ss"),
    ("%d/%m/%Y %H:%M", "dd/MM/yyyy HH:mm"),
    ("%Y%m%d%H%M%S", "yyyyMMddHHmmss"),
    ("%Y-%m-%dT%H:%M:%S.%f", "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"),
    ("%a, %d %b %Y %H:%M:%S", "EEE, dd MMM yyyy HH:mm:ss"),
    ("%A %d %B %Y %I:%M:%S %p", "EEEE dd MMMM yyyy hh:mm:ss a"),
    ("%Y %j %H", "yyyy DDD HH"),
]


@pytest.mark.parametrize("patterns", PATTERNS)
@anytime
@given(found=st.lists(moments, max_size=6))
def test_both_kinds_of_pattern_read_what_strftime_writes(patterns: tuple[str, str], found: list[datetime]) -> None:
    texts = [moment.strftime(patterns[0]) for moment in found]
    expected = [nanoseconds(datetime.strptime(text, patterns[0]).replace(tzinfo=UTC)) for text in texts]
    assert read(texts, format=patterns[0]) == expected
    assert read(texts, format=patterns[1]) == expected


@anytime
@given(st.lists(st.text("0123456789-: ", min_size=14, max_size=20) | moments.map(str), max_size=8))
def test_a_pattern_refuses_what_strptime_refuses(texts: list[str]) -> None:
    pattern = "%Y-%m-%d %H:%M:%S"

    def oracle(text: str) -> int | str:
        try:
            return fits(nanoseconds(datetime.strptime(text, pattern).replace(tzinfo=UTC)))
        except ValueError:
            return BAD

    assert read(texts, format=pattern) == [oracle(text) for text in texts]


def test_the_fast_and_the_slow_reader_agree_on_every_day_and_false_date() -> None:
    texts = [f"{y}-{m:02}-{d:02} 23:59:59" for y in (1900, 1970, 2000, 2024) for m in range(14) for d in range(33)]
    reader = Reader("%Y-%m-%d %H:%M:%S", "UTC")

    def slow(text: str) -> int | str:
        try:
            return reader(text)
        except ValueError:
            return BAD

    assert read(texts, format="yyyy-MM-dd HH:mm:ss") == [slow(text) for text in texts]


def test_rfc_2822_with_its_offset() -> None:
    expected = nanoseconds(datetime(2017, 4, 22, 15, 11, 58, tzinfo=timezone(timedelta(hours=-5))))
    for pattern in ("%a, %d %b %Y %H:%M:%S %z", "EEE, d MMM yyyy HH:mm:ss Z"):
        assert read(["Sat, 22 Apr 2017 15:11:58 -0500"], format=pattern) == [expected]


@pytest.mark.parametrize("offset", ["+99:99", "+24:00", "-0060"])
def test_an_offset_that_no_clock_has_is_unreadable_in_a_pattern_and_in_iso_8601(offset: str) -> None:
    assert read([f"2017-04-22T15:11:58{offset}"], format="%Y-%m-%dT%H:%M:%S%z") == [BAD]
    assert read([f"2017-04-22T15:11:58{offset}"], iso=True) == [BAD]


def test_names_are_english() -> None:
    assert read(["01 May 2020", "01 Mai 2020"], format="%d %b %Y") == [1588291200 * 10**9, BAD]


def test_a_fraction_of_nine_digits_is_kept() -> None:
    assert read(["1970-01-01 00:00:01.123456789"], format="yyyy-MM-dd HH:mm:ss.SSSSSSSSS") == [1123456789]
    assert read(["1970-01-01T00:00:01.123456789Z", "1969-12-31T23:59:59.999999999Z"]) == [1123456789, -1]
    assert read(["1970-01-01T00:00:01.1234567891Z"]) == [1123456789]


@anytime
@given(
    st.lists(st.tuples(moments, st.integers(0, 9), st.integers(0, 999_999_999), st.integers(-1439, 1439)), max_size=6),
    st.sampled_from("T "),
    st.sampled_from(["", "Z", "+HH:MM", "+HHMM"]),
)
def test_iso_8601_with_any_fraction_and_offset(
    found: list[tuple[datetime, int, int, int]], between: str, form: str
) -> None:
    texts, expected = [], []
    for moment, digits, fraction, minutes in found:
        shift = minutes if form.startswith("+") else 0
        part = f"{fraction:09}"[:digits]
        offset = {"": "", "Z": "Z"}.get(form, f"{'-' if shift < 0 else '+'}{abs(shift) // 60:02}:{abs(shift) % 60:02}")
        offset = offset.replace(":", "") if form == "+HHMM" else offset
        texts.append(moment.strftime(f"%Y-%m-%d{between}%H:%M:%S") + (f".{part}" if digits else "") + offset)
        whole = nanoseconds(moment.replace(microsecond=0, tzinfo=UTC)) - shift * 60 * 10**9
        expected.append(fits(whole + int(part.ljust(9, "0") or 0)))
    assert read(texts, iso=True) == expected


def test_what_is_nearly_iso_8601_is_not_guessed_at() -> None:
    """Python's reader takes any character between date and time, and a colon before a fraction."""
    times = ["20171223-22:15:29:5", "2017-12-23x22:15", "2017-12-23T22:15:29:5", "2017-12-23 22:15:29.", "2017-12-23 2"]
    assert read(times, iso=True) == [BAD] * 5


def test_other_iso_forms() -> None:
    noon = 1357041600 * 10**9
    forms = ["2013-01-01T12:00", "2013-01-01 12:00Z", "20130101T120000", "2013-01-01T12:00:00,000",
             "2013-W01-2T12:00:00",
             "2013-01-01T14+02", "2013-01-01t12:00:00z"]  # fmt: skip
    assert read(forms) == [noon] * len(forms)
    assert read(["2013-01-01", "2013-13-01", "2013-02-29", "2013-01-01T25:00:00", "yesterday", "2013"]) == [
        noon - 43200 * 10**9, BAD, BAD, BAD, BAD, BAD,
    ]  # fmt: skip


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "UTC"])
def test_naive_times_are_those_of_the_zone_also_where_clocks_change(zone: str) -> None:
    rng = random.Random(7)
    found = [datetime(2013, 1, 1) + timedelta(minutes=rng.randrange(1_000_000)) for _ in range(400)]
    found += [datetime(2035, 1, 1) + timedelta(days=7 * week) for week in range(260)]  # a rule, no table, from 2037 on
    for start in (datetime(2013, 3, 10), datetime(2013, 3, 31), datetime(2013, 4, 7), datetime(2013, 10, 6),
                  datetime(2013, 10, 27), datetime(2013, 11, 3)):  # fmt: skip
        found += [start + timedelta(minutes=15 * step) for step in range(24)]
    expected = [nanoseconds(moment.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)) for moment in found]
    assert read([str(moment) for moment in found], zone=zone) == expected
    assert read([str(moment) for moment in found], zone=zone, format="%Y-%m-%d %H:%M:%S") == expected
    slow = [moment.strftime("%d %b %Y %H:%M") for moment in found]
    assert read(slow, zone=zone, format="%d %b %Y %H:%M") == expected


def test_times_beyond_64_bits_of_nanoseconds_are_told_apart() -> None:
    assert read(["2262-04-11T23:47:16", "2262-04-11T23:47:17", "9999-12-31"]) == [9223372036 * 10**9, BEYOND, BEYOND]
    assert read(["1600-01-01"], format="%Y-%m-%d") == [BEYOND]


@pytest.mark.parametrize("pattern", ["%Q", "yyyy-bb", "no field", "%Y %Y", "yyyy SSSSSSSSSS", "%"])
def test_an_unknown_pattern_is_told(pattern: str) -> None:
    with pytest.raises(UserError, match="allowed"):
        pieces(pattern)
