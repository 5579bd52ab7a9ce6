"""Hints: small rows in, whole hints out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from streamgauge.config import Nexmark, TimeColumn
from streamgauge.records.profile import Hint
from streamgauge.streams.disorder.blocks import Blocks
from streamgauge.streams.disorder.hints import Place
from streamgauge.streams.disorder.looking import Origin, in_file
from streamgauge.streams.nexmark.generator import Generator, rows
from tests.disorder.looked import DAY, NOW, NS, blocks, late, look

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
    many = [0 if i in range(6) or i in range(150, 170) else (NOW + i) * NS["s"] for i in range(200)]
    (hint,) = in_file(blocks(many), origin).hints
    assert "(lines 3, 4, 5, 6, 7 of 0.csv and 21 more)" in hint.text, "of the others, some lie in another file"
