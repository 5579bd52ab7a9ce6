"""Hints: small rows in, whole hints out; counts and lines against brute force, however events are cut into blocks."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamgauge.config import Nexmark, TimeColumn
from streamgauge.records.profile import Hint, InFile
from streamgauge.streams.disorder.blocks import Blocks, Kept, Region
from streamgauge.streams.disorder.definitions import BEFORE_ALL
from streamgauge.streams.disorder.hints import Place
from streamgauge.streams.disorder.looking import Origin, in_file
from streamgauge.streams.disorder.row_groups import RowGroup
from streamgauge.streams.disorder.zones import repeated_hours
from streamgauge.streams.nexmark.generator import Generator, rows

NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
NOW = 1_767_225_600  # 2026-01-01
DAY = 86_400


def blocks(times: list[int], sizes: list[int] | None = None) -> Blocks:
    """The times, in blocks of those sizes in turn."""
    array, seqs = np.array(times, np.int64), np.arange(len(times))
    if not sizes:
        return Blocks.of(array, seqs)
    cuts, before = [0], BEFORE_ALL
    while cuts[-1] < len(times):
        cuts.append(min(len(times), cuts[-1] + sizes[(len(cuts) - 1) % len(sizes)]))
    extents = []
    for low, high in pairwise(cuts):
        part = array[low:high]
        extents.append(RowGroup("", len(extents), high - low, int(part.min()), int(part.max()), before))
        before = max(before, int(part.max()))
    return Blocks(
        extents,
        lambda k: array[cuts[k] : cuts[k + 1]],
        lambda k: seqs[cuts[k] : cuts[k + 1]],
        lambda work, numbers: [work(k) for k in numbers],
    )


def look(times: list[int], sizes: list[int] | None = None, unit: Any = "s", **time: Any) -> InFile:
    """The times are numbers of the unit, in a file with a header."""
    column = TimeColumn(column="t", **(time or {"unit": unit}))
    places = (Place(file="f.csv", first_seq=0, first_line=2),)
    return in_file(blocks([at * NS[unit] for at in times], sizes), Origin("ns", column, places))


def late(times: list[int]) -> int:
    """Number of times below one before them."""
    return sum(any(earlier > time for earlier in times[:n]) for n, time in enumerate(times))


MIXED = [NOW + i if i % 10 == 0 else (NOW + i) * 1000 for i in range(100)]
AHEAD = [NOW + i + 7200 * (i == 50) for i in range(200)]
KINDS: list[tuple[str, dict[str, Any], list[int], list[dict[str, Any]]]] = [
    (
        "seconds among milliseconds", {"unit": "ms"}, MIXED,
        [{
            "kind": "two_units", "events": 10, "without": 0, "enough_without": 0, "lines": (2, 12, 22, 32, 42),
            "text": "90 times are in 2026, 10 in 1970 (lines 2, 12, 22, 32, 42 and 5 more), which are seconds, not "
                    "milliseconds; without them 0 of 90 are out of order",
        }],
    ),
    (
        "milliseconds among seconds", {"unit": "ms"}, [(NOW + i) * (1000 if i % 50 == 7 else 1) for i in range(100)],
        [{
            "kind": "two_units", "events": 2, "without": 0, "enough_without": 0, "lines": (9, 59),
            "text": "98 times are in 1970, 2 in 2026 (lines 9, 59), which are in milliseconds, while the others are "
                    "seconds; without them 0 of 98 are out of order",
        }],
    ),
    (
        "three units", {"unit": "us"}, [(NOW + i) * (1, 1000, *[10**6] * 8)[i % 10] for i in range(40)],
        [
            {
                "kind": "two_units", "events": 4, "without": 3,
                "enough_without": (NOW + 29) * NS["s"] - (NOW + 30) * NS["us"], "lines": (3, 13, 23, 33),
                "text": "32 times are in 2026, 4 in 1970 (lines 3, 13, 23, 33), which are milliseconds, not "
                        "microseconds; without them 3 of 36 are out of order",
            },
            {
                "kind": "two_units", "events": 4, "without": 0, "enough_without": 0, "lines": (2, 12, 22, 32),
                "text": "32 times are in 2026, 4 in 1970 (lines 2, 12, 22, 32), which are seconds, not microseconds; "
                        "without these and those above 0 of 32 are out of order",
            },
        ],
    ),
    (
        "seconds read as milliseconds", {"unit": "ms"}, [NOW + i for i in range(10)],
        [{
            "kind": "unit", "events": 10,
            "text": "all 10 times are in 1970 if they are milliseconds, and in 2026 if they are seconds: is the unit "
                    "s?",
        }],
    ),
    (
        "seconds and milliseconds read as microseconds", {"unit": "us"},
        [(NOW + i) * (1 if i % 10 == 0 else 1000) for i in range(20)],
        [
            {
                "kind": "unit", "events": 18, "lines": (3, 4, 5, 6, 7),
                "text": "18 times (lines 3, 4, 5, 6, 7 and 13 more) are in 1970 if they are microseconds, and in 2026 "
                        "if they are milliseconds: is the unit ms?",
            },
            {
                "kind": "unit", "events": 2, "lines": (2, 12),
                "text": "2 times (lines 2, 12) are in 1970 if they are microseconds, and in 2026 if they are seconds: "
                        "is the unit s?",
            },
        ],
    ),
    (
        "a clock at 1970", {}, [8 if i in (40, 60) else NOW + i for i in range(100)],
        [{
            "kind": "clock_at_1970", "events": 2, "without": 0, "enough_without": 0, "lines": (42, 62),
            "text": "2 events (lines 42, 62) are at 1970-01-01T00:00:08Z, as of a clock that is not set, and the "
                    "others in 2026; without them 0 of 98 are out of order",
        }],
    ),
    (
        "minus one for none, at the beginning", {"unit": "ms"}, [-1, *((NOW + i) * 1000 for i in range(9))],
        [{
            "kind": "clock_at_1970", "events": 1, "without": 0, "enough_without": 0, "lines": (2,),
            "text": "1 event (line 2) is at 1969-12-31T23:59:59.999Z, as of a clock that is not set, and the others "
                    "in 2026; without it 0 of 9 are out of order",
        }],
    ),
    (
        "2099 for no end", {}, [4_102_358_400 if i % 20 == 7 else NOW + i for i in range(100)],
        [{
            "kind": "far_ahead", "events": 5, "without": 0, "enough_without": 0, "lines": (9, 29, 49, 69, 89),
            "text": "5 events (lines 9, 29, 49, 69, 89) are in 2099, 73 years after all others; without them 0 of 95 "
                    "are out of order",
        }],
    ),
    (
        "a year before", {}, [NOW + i - 500 * DAY * (i == 9) for i in range(100)],
        [{
            "kind": "far_behind", "events": 1, "without": 0, "enough_without": 0, "lines": (11,),
            "text": "1 event (line 11) is in 2024, 1 year before all others; without it 0 of 99 are out of order",
        }],
    ),
    (
        "one event two hours ahead", {}, AHEAD,
        [{
            "kind": "ahead", "events": 1, "without": 0, "enough_without": 0, "lines": (52,),
            "text": "1 event (line 52) is ahead, by 120 min, and makes 149 later ones late; without it 0 of 199 are "
                    "out of order",
        }],
    ),
    (
        "one behind another", {}, [NOW + i + {50: 7200, 53: 3600}.get(i, 0) for i in range(200)],
        [{
            "kind": "ahead", "events": 2, "without": 0, "enough_without": 0, "lines": (52, 55),
            "text": "2 events (lines 52, 55) are ahead, by 120 min the first of them, and make 149 later ones late; "
                    "without them 0 of 198 are out of order",
        }],
    ),
    (
        "one in the first line", {"unit": "ms"},
        [(NOW + 7200) * 1000, *(NOW * 1000 + i - 5 * (i % 4 == 1) for i in range(99))],
        [{
            "kind": "ahead", "events": 1, "without": 25, "enough_without": 4_000_000, "lines": (2,),
            "text": "1 event (line 2) is ahead, by 2 h, and makes 74 later ones late; without it 25 of 99 are out "
                    "of order, and a watermark delay of 4 ms loses none",
        }],
    ),
    (
        "newest first", {}, [NOW - 60 * i for i in range(50)],
        [{
            "kind": "newest_first", "events": 50, "without": 0,
            "text": "the newest event comes first: time falls 49 times and rises 0 times; read from the end, 0 of 50 "
                    "are out of order; order: event_time sorts them",
        }],
    ),
    (
        "constant", {}, [NOW] * 5,
        [{"kind": "constant_time", "events": 5, "text": "all 5 events are at 2026-01-01T00:00:00Z"}],
    ),
    (
        "dates", {}, [NOW + i // 4 * DAY for i in range(40)],
        [{
            "kind": "whole_days", "events": 40,
            "text": "all times are whole days, from 2026-01-01 to 2026-01-10: the events of a day count as in order; "
                    "is there a column with the time of day?",
        }],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("time", "times", "wanted"), [k[1:] for k in KINDS], ids=[k[0] for k in KINDS])
@pytest.mark.parametrize("sizes", [None, [7, 1, 30]])
def test_each_kind(
    sizes: list[int] | None, time: dict[str, Any], times: list[int], wanted: list[dict[str, Any]]
) -> None:
    found = look(times, sizes, **time) if "unit" in time else look(times, sizes)
    assert found.hints == tuple(Hint(**hint) for hint in wanted)
    assert (found.events, found.out_of_order) == (len(times), late(times))


@pytest.mark.parametrize(("coarse", "fine"), [(a, b) for a in NS for b in NS if NS[a] > NS[b]])
def test_every_pair_of_units(coarse: str, fine: str) -> None:
    some, all_ = [(NOW + i) * NS["s"] // NS[coarse] for i in range(60)], NS["s"] // NS[fine]
    mixed = [time if n % 6 == 0 else (NOW + n) * all_ for n, time in enumerate(some)]
    assert [(h.kind, h.events, h.without, h.lines[:2]) for h in look(mixed, unit=fine).hints] == [
        ("two_units", 10, 0, (2, 8))
    ]
    assert [h.kind for h in look(some, unit=fine).hints] == ["unit"]


DRAW = np.random.default_rng(1)
CLEAN: dict[str, list[int]] = {
    "in order": [NOW + i for i in range(5000)],
    "gaps of days": [NOW + i + i // 500 * 9 * DAY for i in range(5000)],
    "a year without events": [NOW + i + i // 2500 * 500 * DAY for i in range(5000)],
    "from 1969 to 1971": [(i - 500) * DAY // 2 + i for i in range(1500)],
    "a relative clock": list(range(5000)),
    "a fifth is late": (NOW + np.arange(5000) - DRAW.integers(0, 100, 5000) * (DRAW.random(5000) < 0.2)).tolist(),
    "in no order": DRAW.permutation(np.arange(NOW, NOW + 5000)).tolist(),
    "one device after another": [NOW + i % 1000 for i in range(5000)],
    "daily": [NOW // DAY * DAY + i * DAY for i in range(500)],
    "one": [NOW],
    "two at once": [NOW, NOW],
    "a last event long after": [*range(NOW, NOW + 100), NOW + 900 * DAY],
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean_data_gives_none(name: str) -> None:
    assert look(CLEAN[name]).hints == ()


@pytest.mark.parametrize("group", [1, 50])
def test_generated_events_give_none(group: int) -> None:
    table = rows(Generator(Nexmark(events=20_000, out_of_order_group_size=group)), 0, 20_000, ())
    found = in_file(
        Blocks.of(np.asarray(table["event_time"]), np.arange(20_000)),
        Origin("ns", TimeColumn(column="date_time", unit="us")),
    )
    assert (found.events, found.hints) == (20_000, ())


def test_lines_of_several_files() -> None:
    places = tuple(Place(file=f"{n}.csv", first_seq=100 * n, first_line=3) for n in range(2))
    origin = Origin("ns", TimeColumn(column="t", unit="s"), places)
    times = [0 if i in (40, 160) else (NOW + i) * NS["s"] for i in range(200)]
    (hint,) = in_file(blocks(times), origin).hints
    assert (hint.lines, hint.files) == ((43, 63), ("0.csv", "1.csv"))
    assert "(lines 43 of 0.csv, 63 of 1.csv)" in hint.text
    (hint,) = in_file(blocks([1 if i == 160 else (NOW + i) * NS["s"] for i in range(200)]), origin).hints
    assert "(line 63 of 1.csv)" in hint.text
    (hint,) = in_file(blocks(times), replace(origin, places=())).hints
    assert "(events 41, 161)" in hint.text


# -- hours that a zone has twice


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


# -- by brute force

TIMES = st.lists(st.one_of(st.integers(-20, 20), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=40)
SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=4)


@settings(max_examples=200, deadline=None)
@given(TIMES, SIZES, st.integers(-20, 20), st.integers(0, 20), st.sets(st.integers(0, 39), max_size=3))
def test_counts_without_some(times: list[int], sizes: list[int], low: int, width: int, rows: set[int]) -> None:
    kept = Kept((Region(low, low + width, (Region(low + 3, low + 4),)),), tuple(sorted(rows)))
    left = [
        (n, time) for n, time in enumerate(times)
        if not (low <= time <= low + width and not low + 3 <= time <= low + 4) and n not in rows
    ]  # fmt: skip
    whole = blocks(times, sizes)
    count = whole.count(kept, 2)
    assert (count.events, count.out_of_order) == (len(left), late([time for _, time in left]))
    kept_times = [time for _, time in left]
    delays = [max(kept_times[: n + 1]) - time for n, time in enumerate(kept_times)]
    assert (count.delays, count.longest) == (sum(delays), max(delays, default=0))
    records = [k for k, (_, time) in enumerate(left) if not any(before > time for _, before in left[:k])]
    gaps = [after - at - 1 for at, after in pairwise([*records, len(left)])]
    assert list(count.holders) == [(left[k][0], gap) for k, gap in zip(records, gaps, strict=True) if gap >= 2]
    pairs = [(a, b) for (_, a), (_, b) in pairwise(left)]
    assert (count.falls, count.rises) == (sum(a > b for a, b in pairs), sum(a < b for a, b in pairs))
    assert whole.backwards() == late(times[::-1])
    assert whole.number(Region(low, low + width)) == sum(low <= time <= low + width for time in times)
    for row in (0, len(times) - 1):
        assert whole.after(row, 5, kept).tolist() == [time for n, time in left if n > row][:5]


@settings(max_examples=200, deadline=None)
@example([0, -9_208_512_000_000_000_001], [1], "s")
@given(TIMES, SIZES, st.sampled_from(["s", "ms", "ns"]))
def test_blocks_make_no_difference(times: list[int], sizes: list[int], unit: Any) -> None:
    origin = Origin("ns", TimeColumn(column="t", unit=unit))
    found = in_file(blocks(times, sizes), origin)
    assert found == in_file(blocks(times), origin)
    assert found.out_of_order == late(times)


def test_two_ahead_by_nearly_the_same_do_not_hide_each_other() -> None:
    times = [NOW + 10 * n for n in range(300)]
    times[129], times[132] = NOW + 101_290, NOW + 101_289
    found = look(times, [64])
    assert [(h.kind, h.events, h.lines, h.without) for h in found.hints] == [("ahead", 2, (131, 134), 0)]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_few_ahead_are_found_among_late_ones(data: st.DataObject) -> None:
    """The lines are those that are ahead, whatever is late besides, and the count without them is that of the rest."""
    count = data.draw(st.integers(300, 600))
    draw = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    times = (NOW + 10 * np.arange(count) - draw.integers(0, 50, count) * (draw.random(count) < 0.2)).tolist()
    at = sorted(data.draw(st.sets(st.integers(5, count // 2), min_size=1, max_size=4)))
    rest = [time for n, time in enumerate(times) if n not in at]
    for n in at:
        times[n] += data.draw(st.integers(100_000, 200_000))
    found = look(times, [64])
    assert found.out_of_order == late(times)
    assert [(h.kind, h.events, h.lines, h.without) for h in found.hints] == [
        ("ahead", len(at), tuple(n + 2 for n in at), late(rest))
    ]


@given(st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=12), min_size=1, max_size=4), st.integers(1, 5))
def test_files_that_are_joined(files: list[list[int]], size: int) -> None:
    """Against each file alone. A block is of one file, as ingest writes them."""
    times, sizes, places = list[int](), list[int](), list[Place]()
    for number, file in enumerate(files):
        places.append(Place(file=f"{number}.csv", first_seq=len(times), first_line=2))
        sizes += [len(file[at : at + size]) for at in range(0, len(file), size)]
        times += file
    origin = Origin("ns", TimeColumn(column="t", unit="s"), tuple(places))
    hints = in_file(blocks([NOW * NS["s"] + at * NS["s"] for at in times], sizes), origin).hints
    within = sum(map(late, files))
    joined = [hint for hint in hints if hint.kind == "files_joined"]
    if len(files) > 1 and late(times) > 0 and 2 * (late(times) - within) >= late(times):
        if any(hint.kind == "newest_first" for hint in hints):
            return
        (hint,) = joined
        assert (hint.events, hint.without) == (late(times) - within, within)
        assert hint.text == (
            f"{late(times) - within:,} of {late(times):,} events out of order are in order within their file: "
            f"{len(files)} files are read one after the other, and overlap in time"
        )
    else:
        assert joined == []
