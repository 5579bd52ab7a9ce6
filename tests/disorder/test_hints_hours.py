"""Hints of hours that a zone has twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from streamgauge.streams.disorder.zones import repeated_hours
from tests.disorder.looked import DAY, look


@pytest.mark.parametrize(
    ("zone", "begin", "wanted"),
    [
        ("Europe/Berlin", datetime(2025, 10, 26, tzinfo=UTC), "between 2025-10-26 02:00 and 03:00 in Europe/Berlin"),
        ("America/New_York", datetime(2025, 11, 2, 5, tzinfo=UTC), "between 2025-11-02 01:00 and 02:00"),
        ("Australia/Lord_Howe", datetime(2025, 4, 5, 14, 30, tzinfo=UTC), "between 2025-04-06 01:30 and 02:00"),
    ],
)
def test_an_hour_twice(zone: str, begin: datetime, wanted: str) -> None:
    local = [(begin + timedelta(minutes=i)).astimezone(ZoneInfo(zone)) for i in range(-60, 180)]
    local = [at.replace(tzinfo=None, fold=0) for at in local]
    times = [int(at.replace(tzinfo=ZoneInfo(zone)).timestamp()) for at in local]  # the first of two, as they are read
    twice = [
        n for n, at in enumerate(local)
        if at.replace(tzinfo=ZoneInfo(zone)).utcoffset() != at.replace(tzinfo=ZoneInfo(zone), fold=1).utcoffset()
    ]  # fmt: skip
    (hint,) = look(times, format="%Y-%m-%d %H:%M:%S", zone=zone).hints
    assert (hint.kind, hint.events, hint.lines) == ("hour_twice", len(twice), tuple(n + 2 for n in twice[:5]))
    assert wanted in hint.text
    assert look(times, format="%Y-%m-%d %H:%M:%S%z", zone=zone).hints == ()


def test_an_hour_twice_of_a_zone_that_nobody_named() -> None:
    begin = int(datetime(2025, 10, 26, tzinfo=UTC).timestamp())  # a Sunday
    times = [begin + 60 * (i if i < 180 else i - 60) for i in range(300)]
    (hint,) = look(times, [100], format="%Y-%m-%d %H:%M:%S").hints
    assert (hint.kind, hint.events, hint.lines) == ("hour_twice", 59, (182, 183, 184, 185, 186))
    assert "begin the hour of 2025-10-26T02:00Z again" in hint.text
    assert look(times, format="%Y-%m-%d %H:%M:%S%z").hints == look(times, unit="s").hints == ()
    assert look([at + DAY for at in times], iso=True).hints == ()
    assert look([*times[:150], times[180], *times[150:180], *times[240:]], iso=True).hints == ()  # fewer come again


def test_no_hour_twice_where_both_are_there() -> None:
    times = [int(datetime(2025, 10, 26, tzinfo=UTC).timestamp()) + 60 * i for i in range(-60, 180)]
    assert look(times, iso=True, zone="Europe/Berlin").hints == ()


def test_repeated_hours_of_many_years() -> None:
    first, last = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (1990, 2030))
    hours = repeated_hours("Europe/Berlin", first, last)
    assert [hour.local[:4] for hour in hours] == [str(year) for year in range(1990, 2030)]
    assert all(hour.between_s - hour.begin_s == hour.end_s - hour.between_s == 3600 for hour in hours)
    assert repeated_hours("UTC", first, last) == repeated_hours("Asia/Kolkata", first, last) == []
