"""Flink's rules of lateness from rows alone, and what a trial may claim wrongly by them: recorded rows, no engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.base.histogram import Histogram
from streamgauge.bench.engines.flink import queries as flink
from streamgauge.bench.engines.spark import queries as spark
from streamgauge.bench.oracle.batches import BatchLog
from streamgauge.bench.oracle.check import Check, check
from streamgauge.bench.oracle.checksum import checksum
from streamgauge.bench.oracle.late_rows import Expectation, Unknowable, expectation
from streamgauge.bench.workloads import Spec
from streamgauge.records.driver import ReportBody
from streamgauge.records.rules import LEAST_MS
from streamgauge.records.trial import SystemFigures
from streamgauge.streams.lateness.sessions import left_out
from tests.engines.hand import row, table

S = 1_000_000
TUMBLING = Spec("windowed_aggregation", "name", "amount", window_us=10 * S)


def rows(events: list[tuple[float, str | None, int]]) -> pa.Table:
    """events: seconds, name, amount; as one queue brought them."""
    offered = pa.Table.from_batches([table([row(n, *event) for n, event in enumerate(events)])])
    for name, values in {"partition": [0] * len(events), "row": range(len(events))}.items():
        offered = offered.append_column(name, pa.array(values, pa.int64()))
    return offered


def stretches(*read: tuple[int, int]) -> list[BatchLog]:
    """read: the first row after each stretch, and the watermark by which its rows were judged, ms."""
    return [BatchLog(number, ({0: end},), mark) for number, (end, mark) in enumerate(read)]


def kept(found: Expectation) -> list[list[int]]:
    return [part.frames[0]["seq"].to_pylist() for part in found.parts]


def test_an_event_at_the_watermark_is_late_on_spark_and_in_time_on_flink() -> None:
    spec = Spec("deduplication", "name", None, window_us=10 * S, watermark_ms=10_000)
    offered = rows([(30, "a", 1), (20, "a", 1), (19.999, "a", 1)])
    logs = stretches((1, 0), (3, 20_000))
    assert kept(expectation(offered, logs, spec, flink.rules(spec))) == [[0, 1]]
    assert kept(expectation(offered, logs, spec, spark.rules(spec, one_watermark=True))) == [[0]]


def test_an_operator_that_loses_nothing_stands_beside_one_that_does() -> None:
    spec = Spec("windowed_join", "name", None, window_us=10 * S)
    logs = [BatchLog(0, ({0: 1},) * 2, LEAST_MS), BatchLog(1, ({0: 3},) * 2, 30_000)]
    never, window = replace(flink.rules(spec).operators[0], kind="never"), flink.rules(spec).operators[1]
    for operators, keep in (((never, window), [[0, 1, 2], [0]]), ((window, never), [[0], [0, 1, 2]])):
        declared = replace(flink.rules(spec), operators=operators)
        found = expectation(rows([(30, "a", 1), (5, "a", 1), (5, "a", 1)]), logs, spec, declared)
        assert [frame["seq"].to_pylist() for frame in found.parts[0].frames] == keep
        assert (found.late_events, found.early_events) == (1, 0)


def test_an_event_joins_an_open_session_before_it_is_judged() -> None:
    spec = Spec("sessions", "name", "amount", window_us=3 * S)
    offered = rows([(10, "a", 1), (12, "a", 1), (14, "b", 1), (9, "a", 1), (9, "b", 1), (16, "b", 1), (11, "a", 1)])
    # at 14 s: the session of a, 10 to 15, is open: 9 s joins it; for b 9 s to 12 s is over. At 16 s that of a is over
    logs = stretches((3, 0), (6, 14_000), (7, 16_000))
    found = expectation(offered, logs, spec, flink.rules(spec))
    assert kept(found) == [[0, 1, 2, 3, 5]]
    assert found.late == 2
    assert kept(expectation(offered, logs, spec, replace(flink.rules(spec), joins_first=False))) == [[0, 1, 2, 5]]


def test_a_session_that_overlaps_one_that_was_emitted_is_another_one() -> None:
    spec = Spec("sessions", "name", "amount", window_us=3 * S, watermark_ms=6_000)
    offered = rows([(10, "a", 1), (20, "a", 1), (11.5, "a", 1), (10.5, "a", 1)])
    # at 14 s that of 10 to 13 s has been emitted; 11.5 to 14.5 is not over, and 10.5 joins it
    found = expectation(offered, stretches((2, 0), (4, 14_000)), spec, flink.rules(spec))
    assert found.late == 0
    assert sorted(map(sorted, kept(found))) == [[0, 1], [2, 3]]


events_of_a_key = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 40), st.integers(0, 3)), max_size=40)


@given(events_of_a_key)
def test_sessions_are_joined_one_by_one_as_flink_does(events: list[tuple[str, int, int]]) -> None:
    """Against Flink's own algorithm in plain words: merge what touches, then drop what is over."""
    gap, watermark, marks = 3, 0, []
    for *_, step in events:
        watermark += step
        marks.append(watermark)
    windows: dict[str, list[tuple[int, int]]] = {}
    wanted = []
    for (key, at, _), mark in zip(events, marks, strict=True):
        live = [window for window in windows.get(key, []) if window[1] > mark]
        touched = [window for window in live if window[0] <= at + gap and at <= window[1]]
        merged = min([at, *(w[0] for w in touched)]), max([at + gap, *(w[1] for w in touched)])
        wanted.append(merged[1] <= mark)
        windows[key] = live if wanted[-1] else [*(w for w in live if w not in touched), merged]
    keys = np.array([ord(key) for key, *_ in events], np.int64)
    times, late = np.array([at for _, at, _ in events], np.int64), np.array(marks, np.int64)
    assert left_out(keys, times, late, gap).tolist() == wanted


def test_of_several_queues_late_sessions_are_not_known() -> None:
    spec = Spec("sessions", "name", "amount", window_us=3 * S)
    offered = rows([(10, "a", 1), (2, "a", 1)]).drop_columns(["partition", "row"])
    offered = offered.append_column("partition", pa.array([0, 1])).append_column("row", pa.array([0, 0]))
    logs = [BatchLog(0, ({0: 1, 1: 0},), 0), BatchLog(1, ({0: 1, 1: 1},), 9_000)]
    with pytest.raises(Unknowable, match="of several queues"):
        expectation(offered, logs, spec, replace(flink.rules(spec), clock="all queues"))


def test_an_event_that_each_of_its_windows_has_left_counts_once() -> None:
    spec = Spec("custom_windows", "name", "amount", window_us=10 * S, mark="7")
    offered = rows([(30, "a", 1), (5, "a", 1), (5, "a", 7), (60, "a", 1), (6, "a", 7)])
    # the 7 at 5 s is in four windows, of which two are over at 30 s; at 60 s all are
    found = expectation(offered, stretches((1, 0), (3, 30_000), (4, 30_000), (5, 60_000)), spec, flink.rules(spec))
    assert found.late == 2
    by_window = replace(flink.rules(spec), late_counted="rows")
    assert expectation(offered, stretches((1, 0), (4, 30_000), (5, 60_000)), spec, by_window).late > 2


#: recorded from a trial: of 10 s and less, one event is late by 10 s; the window of 10 to 20 s is closed by 20 s
RECORDED = rows([(5, "a", 3), (10, "a", 4), (9, "a", 9), (15, "a", 5), (20, "a", 6), (19.999, "a", 8)])
READ = [(2, None), (3, 10_000), (5, 10_000), (6, 20_000)]


def sums(*groups: tuple[int, int, int]) -> pa.Table:
    """groups: start of the window in seconds, events, total."""
    starts = [start for start, *_ in groups]
    return pa.table(
        {
            "window_start": pa.array(starts, pa.timestamp("s")),
            "window_end": pa.array([start + 10 for start in starts], pa.timestamp("s")),
            "key": ["a"] * len(groups),
            "events": [events for _, events, _ in groups],
            "total": [total for *_, total in groups],
            "mean": [total / events for _, events, total in groups],
        }
    )


RIGHT = sums((0, 1, 3), (10, 2, 9), (20, 1, 6))


def checked(output: pa.Table, read: list[tuple[int, int | None]] = READ, late: int | None = 2) -> Check:
    figures: SystemFigures = {"stretches": [{"ends": [{"0": end}], "watermark_ms": mark} for end, mark in read]}
    if late is None:
        figures["late_dropped"] = None
    batch: Any = {"late": late}
    report: ReportBody = {
        "rows": output.num_rows, "checksum": checksum(output), "batch": batch, "event_latency": Histogram().to_dict(),
        "processing_latency": Histogram().to_dict(),
    }  # fmt: skip
    return check(RECORDED, figures, [report], TUMBLING, flink.rules(TUMBLING))


def test_recorded_rows_are_right() -> None:
    found = checked(RIGHT)
    assert (found.wrong, found.expected_late, found.late_counted) == (None, 2, "events in no window")


def test_a_watermark_one_tick_off_is_caught() -> None:
    for read in ([(2, None), (3, 10_001), *READ[2:]], [*READ[:3], (6, 19_999)]):
        assert "its rows imply" in str(checked(RIGHT, read).wrong)
    # and an engine that closes by one a tick late, and says nothing of it, has taken what it should not
    late_too = sums((0, 1, 3), (10, 3, 17), (20, 1, 6))
    assert str(checked(late_too).wrong) == "output wrong: 3 rows as expected, but with other values"


def test_a_closed_end_of_windows_is_caught() -> None:
    """Windows (0, 10] for [0, 10) have 10 s in the first and 20 s in the second."""
    closed = sums((0, 2, 7), (10, 2, 11))
    assert str(checked(closed).wrong) == "output wrong: 2 rows, 3 expected"


def test_a_lost_row_is_caught() -> None:
    assert str(checked(RIGHT.slice(1)).wrong) == "output wrong: 2 rows, 3 expected"
    short = sums((0, 1, 3), (10, 1, 4), (20, 1, 6))  # lost before the window
    assert "but with other values" in str(checked(short).wrong)


def test_a_late_event_that_is_not_counted_is_caught_and_an_unknown_count_is_unchecked() -> None:
    assert str(checked(RIGHT, late=1).wrong) == "late events: 1 reported as dropped, 2 expected"
    lost = checked(RIGHT, late=None)
    assert (lost.wrong, lost.reported_late) == (None, None)
