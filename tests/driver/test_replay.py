"""Tests the replay: loops, copies, partitions, and the instant at which the stream passed an event's time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.base.arrow import replaced
from streamgauge.base.errors import UserError
from streamgauge.bench.driver.marking import Marking
from streamgauge.bench.driver.passing import Passing
from streamgauge.bench.driver.replay import Before, Feed, Replay, densified, load_stream
from streamgauge.bench.driver.schedule import schedule
from streamgauge.streams.kafka.partitioner import partitions_of
from tests.driver.conftest import COLUMNS, stream_of

START = 10**15


def replayed(replay: Replay, rows: int, *, rate: float = 1e9, partition: int = 0, partitions: int = 1) -> list[Any]:
    """The first rows of a partition, in batches of 3; at 1e9 events/s event i is due i ns after the start."""
    feed = Feed(replay, schedule(rate, 10, replay.loop), START, partition, partitions)
    found: list[Any] = []
    while len(found) < rows:
        batch, walls = feed.next_batch(3)
        assert batch.schema == replay.stream.schema
        assert batch.column("offered_wall").to_pylist() == walls.tolist()
        found += batch.to_pylist()
    return found[:rows]


@given(
    st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=7, max_size=30), st.integers(1, 7), st.integers(1, 3)
)
def test_a_key_stays_in_its_partition_and_the_stream_s_order_stays_within_it(
    keys: list[str | None], partitions: int, loops: int
) -> None:
    plain = stream_of([1000 * number for number in range(len(keys))])
    table = replaced(plain.table, {"carrier": pa.chunked_array([keys], pa.string())})
    replay = Replay(replace(plain, table=table, partition_by="carrier"))
    whole = replayed(Replay(replace(plain, table=table)), loops * len(keys))
    dealt = partitions_of(table.column("carrier"), partitions)
    for partition in range(partitions):
        wanted = [row for number, row in enumerate(whole) if dealt[number % len(keys)] == partition]
        if wanted:
            assert replayed(replay, len(wanted), partition=partition, partitions=partitions) == wanted
        else:
            assert not Feed(replay, schedule(1, 1, replay.loop), START, partition, partitions).rows
    assert sum(replay.share([partition], partitions) for partition in range(partitions)) == pytest.approx(1)


def test_event_wall_is_when_the_running_maximum_reached_the_event_time() -> None:
    #        in order, in order, late, tie, new maximum, late, late beyond the first
    times = [1000, 3000, 2000, 3000, 5000, 4000, 500]
    walls = [row["event_wall"] - START for row in replayed(Replay(stream_of(times)), 7)]
    assert walls == [0, 1, 1, 1, 4, 4, 0]


def test_a_whole_row() -> None:
    row = replayed(Replay(stream_of([5_000_001_999, 4_000_000_000])), 2)[1]
    assert row.pop("event_ts").isoformat() == "1970-01-01T00:00:04+00:00"
    assert row == {
        "seq": 1,
        "event_time": 4_000_000_000,
        "ingestion_time": 5_000_001_999,
        "offered_wall": START + 1,
        "event_wall": START,
        "sentinel": False,
        "line": b"line 1\n",
        "carrier": "C1",
        "flight": 1,
    }


def test_a_short_stream_loops_with_shifted_times() -> None:
    found = replayed(Replay(stream_of([100, 110, 105, 130])), 10)  # span 30, mean gap 10
    assert [row["event_time"] for row in found] == [100, 110, 105, 130, 140, 150, 145, 170, 180, 190]
    assert [row["ingestion_time"] for row in found[4:8]] == [140, 150, 150, 170]
    assert [row["seq"] for row in found] == list(range(10))
    assert [row["event_wall"] - START for row in found[4:8]] == [4, 5, 5, 7]


@settings(deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=8), st.integers(1, 40))
def test_event_wall_equals_brute_force_through_all_loops(times: list[int], shift: int) -> None:
    count, loops = len(times), 5
    unrolled = [time + loop * shift for loop in range(loops) for time in times]
    expected = [next(j for j, other in enumerate(unrolled) if other >= time) for time in unrolled]
    passing = Passing(np.array(times, np.int64), shift)
    index = np.arange(count * loops)
    assert passing.first(index // count, index % count).tolist() == expected


@pytest.mark.parametrize("partitions", [1, 2, 3])
def test_partitions_share_out_every_row_once_in_order(partitions: int) -> None:
    replay = Replay(stream_of([i * 10 for i in range(7)]))
    whole = replayed(replay, 28)
    parts = [
        replayed(replay, sum(i % 7 % partitions == p for i in range(28)), partition=p, partitions=partitions)
        for p in range(partitions)
    ]
    assert sorted((row for part in parts for row in part), key=lambda row: row["seq"]) == whole
    assert all([row["seq"] for row in part] == sorted(row["seq"] for row in part) for part in parts)


def test_densify_interleaves_copies_under_salted_keys() -> None:
    stream = densified(stream_of([10, 20]), 2, ["carrier", "flight"])
    found = replayed(Replay(stream), 6)
    assert [(r["seq"], r["event_time"], r["carrier"], r["flight"]) for r in found] == [
        (0, 10, "C0#0", 0),
        (1, 10, "C0#1", 1),
        (2, 20, "C1#0", 2),
        (3, 20, "C1#1", 3),
        (4, 23, "C0#0", 0),
        (5, 23, "C0#1", 1),
    ]


def test_the_sentinel_is_beyond_every_event_of_its_loops() -> None:
    replay = Replay(stream_of([100, 110, 105, 130]))
    feed = Feed(replay, schedule(1, 1, replay.loop), START, 0, 1)
    feed.next_batch(4)
    feed.next_batch(1)
    row = replay.sentinel(feed.latest(), START, horizon_ps=5000).to_pylist()[0]
    assert (row["event_time"], row["sentinel"], row["seq"], row["line"]) == (175, True, -1, b"")
    assert (row["offered_wall"], row["event_wall"], row["carrier"]) == (START, START, None)


def test_a_stream_that_follows_lies_beyond_all_that_was_offered_and_has_numbers_and_ids_of_its_own() -> None:
    first, second = Replay(stream_of([100, 110, 105, 130])), Replay(stream_of([7, 3, 9]))
    marking, plan = Marking(("carrier",), 1), schedule(1, 1, first.loop)
    feeds = [Feed(first, plan, START, partition, 2, marking) for partition in (0, 1)]
    rows = [row for feed in feeds for _ in (0, 1) for row in feed.next_batch(2)[0].to_pylist()]
    before = Before.of([feed.before(second, 5000) for feed in feeds])
    followed = Feed(second, plan, feeds[0].last_wall, 0, 1, marking, before)
    later = [row for _ in (0, 1) for row in followed.next_batch(3)[0].to_pylist()]
    assert max(feed.latest() for feed in feeds) == max(row["event_time"] for row in rows) == 170
    assert [row["event_time"] for row in later] == [5004, 5000, 5006, 5007, 5003, 5009]
    assert [row["seq"] for row in later] == [8, 9, 10, 11, 12, 13]
    assert {row["carrier"] for row in rows}.isdisjoint(row["carrier"] for row in later)
    assert len({row["carrier"] for row in later}) == 6
    assert [row["offered_wall"] for row in later] == sorted(row["offered_wall"] for row in later)
    assert later[0]["offered_wall"] >= max(row["offered_wall"] for row in rows[:4])


def test_stream_seconds_per_wall_second() -> None:
    assert Replay(stream_of([0, 10**9, 2 * 10**9])).speed(30) == pytest.approx(30)


def test_loading_reads_the_parts_in_order_and_says_what_it_kept(artifact: Path) -> None:
    files = [artifact / "part-0.parquet", artifact / "part-1.parquet"]
    stream = load_stream(files, "ns", {"flight": "int64"})
    assert stream.numbers("seq").tolist() == list(range(1000))
    assert stream.table.column_names == ["ingestion_time", "seq", "event_time", "flight"]
    assert not stream.truncated


def test_a_stream_that_is_too_large_is_cut_to_a_prefix(artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgauge.bench.driver.replay.MAX_BYTES", 32 * 700)
    stream = load_stream([artifact / "part-0.parquet", artifact / "part-1.parquet"], "ns", {"flight": "int64"})
    assert (stream.table.num_rows, stream.rows_in_artifact, stream.truncated) == (600, 1000, True)


def test_bad_streams_are_told_in_one_line(artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = artifact / "part-0.parquet"
    with pytest.raises(UserError, match="no column 'origin'; allowed: ingestion_time"):
        load_stream([file], "ns", {"origin": "string"})
    with pytest.raises(UserError, match=r"no readable Parquet: .*; delete its folder, which is then built again"):
        load_stream([artifact / "manifest.json"], "ns", {})
    with pytest.raises(UserError, match="holds no events"):
        load_stream([], "ns", {})
    with pytest.raises(UserError, match=r"densify: key column 'line' is None"):
        load_stream([file], "ns", COLUMNS, line=True, densify=2, salted=["line"])
    monkeypatch.setattr("streamgauge.bench.driver.replay.MAX_BYTES", 32)
    with pytest.raises(UserError, match="max_memory_mb"):
        load_stream([file], "ns", {})
