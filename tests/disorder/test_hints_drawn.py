"""Counts and lines of hints against brute force, however events are cut into blocks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamgauge.config import TimeColumn
from streamgauge.streams.disorder.blocks import Kept, Region
from streamgauge.streams.disorder.hints import Place
from streamgauge.streams.disorder.looking import Origin, in_file
from tests.disorder.looked import NOW, NS, blocks, late, look

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
