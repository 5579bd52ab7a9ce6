"""Watermarks from rows alone: as Spark rounds them, over frames, and behind the sentinel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.bench.engines.spark.queries import rules
from streamgauge.bench.oracle.batches import BatchLog, taken_by
from streamgauge.bench.oracle.watermarks import Watermarks, recomputed
from streamgauge.bench.workloads import Spec
from streamgauge.records.rules import Operator, Pace, Rules

AGGREGATION = Spec("windowed_aggregation", "name", "amount", window_us=10_000_000, watermark_ms=2_000)
JOIN = Spec("windowed_join", "name", None, window_us=10_000_000)
Logged = list[tuple[tuple[dict[int, int], ...], int]]  # of each batch: the ends of each frame, the watermark


def found(
    times_us: list[list[int]], logged: Logged, spec: Spec = AGGREGATION, declared: Rules | None = None
) -> Watermarks:
    """times_us: for each partition."""
    places = [(p, n, us) for p, times in enumerate(times_us) for n, us in enumerate(times)]
    columns = [np.array(column, np.int64) for column in zip(*places, strict=True)]
    rows = pa.table({"partition": columns[0], "row": columns[1], "event_ts": pa.array(columns[2], pa.timestamp("us"))})
    logs = [BatchLog(number, *one) for number, one in enumerate(logged)]
    taken = [taken_by(rows, logs, n) for n in range(len(logs[0].ends))]
    return recomputed(rows, taken, logs, spec, declared or rules(spec))


def watermarks(times_us: list[list[int]], logged: Logged, spec: Spec = AGGREGATION) -> list[int]:
    right = found(times_us, logged, spec)
    assert right.wrong is None, right.wrong
    return [log.watermark_ms for log in right.logs]


def test_the_largest_of_the_batches_before_rounded_down_minus_the_delay_and_never_back() -> None:
    times = [[1_000_000, 5_999_999, 3_000_000, 7_000_000]]
    logged: Logged = [(({0: 1},), 0), (({0: 2},), 0), (({0: 3},), 3_999), (({0: 4},), 3_999), (({0: 4},), 5_000)]
    assert watermarks(times, logged) == [0, 0, 3_999, 3_999, 5_000]  # 1 s minus 2 s is not below 0


@pytest.mark.parametrize(("step_us", "wanted_ms"), [(1, 22_000), (1_000, 21_999), (10_000_000, 14_999)])
def test_delay_and_rounding_are_those_that_the_engine_declares(step_us: int, wanted_ms: int) -> None:
    declared = replace(rules(AGGREGATION), delay_us=5_000_500, pace=Pace(step_us=step_us))
    right = found([[27_000_500]], [(({0: 1},), 0), (({0: 1},), 25_000)], declared=declared)
    assert right.wrong == f"watermark of batch 1: the engine logged 25000 ms, its rows imply {wanted_ms} ms"


def test_one_operator_that_loses_events_is_enough_for_a_watermark() -> None:
    declared = replace(rules(JOIN), operators=(Operator("never"), Operator("event")))
    right = found([[27_000_000]], [(({0: 1},) * 2, 0), (({0: 1},) * 2, 1)], JOIN, declared)
    assert right.wrong == "watermark of batch 1: the engine logged 1 ms, its rows imply 27000 ms"


def test_of_times_before_1970_there_is_none() -> None:
    assert watermarks([[-5_000_001, -1]], [(({0: 1},), 0), (({0: 2},), 0)]) == [0, 0]


def test_partitions_have_one_watermark_and_frames_the_least() -> None:
    times = [[10_000_000, 40_000_000], [20_000_000]]
    logged: Logged = [
        (({0: 1, 1: 1}, {0: 1, 1: 0}), 0),
        (({0: 2, 1: 1}, {0: 1, 1: 1}), 10_000),
        (({0: 2, 1: 1}, {0: 2, 1: 1}), 20_000),
        (({0: 2, 1: 1}, {0: 2, 1: 1}), 40_000),
    ]
    assert watermarks(times, logged, JOIN) == [0, 10_000, 20_000, 40_000]


def test_behind_a_sentinel_the_logged_one_stands_if_all_is_late_by_it() -> None:
    times = [[10_000_000, 15_000_000], [12_000_000]]
    ends: list[tuple[dict[int, int], ...]] = [({0: 3, 1: 0},), ({0: 3, 1: 1},), ({0: 3, 1: 2},)]
    assert watermarks(times, list(zip(ends, [0, 25_000, 25_000], strict=True))) == [0, 25_000, 25_000]
    early = found(times, list(zip(ends, [0, 24_999, 25_000], strict=True)))
    assert early.wrong == "watermark of batch 1: the engine logged 24999 ms, its rows imply at least 25000 ms"
    assert [log.watermark_ms for log in early.logs] == [0, 25_000, 25_000]
    back = found(times, list(zip(ends, [0, 26_000, 25_000], strict=True)))
    assert back.wrong == "watermark of batch 2: the engine logged 25000 ms, its rows imply at least 26000 ms"


def test_a_sentinel_of_one_frame_moves_nothing_yet() -> None:
    logged: Logged = [
        (({0: 3}, {0: 1}), 0),
        (({0: 3}, {0: 2}), 10_000),
        (({0: 3}, {0: 3}), 15_000),
        (({0: 3},) * 2, 99_000),
    ]
    assert watermarks([[10_000_000, 15_000_000]], logged, JOIN) == [0, 10_000, 15_000, 99_000]


@pytest.mark.parametrize("logged", [24_000, 26_000, 0])
def test_another_watermark_than_the_rows_is_found(logged: int) -> None:
    right = found([[27_000_000]], [(({0: 1},), 0), (({0: 1},), logged)])
    assert right.wrong == f"watermark of batch 1: the engine logged {logged} ms, its rows imply 25000 ms"
    assert right.logs[1].watermark_ms == 25_000


def test_one_of_the_engines_own_clock_stands_unchecked() -> None:
    logs = [BatchLog(0, ({0: 1},), 0), BatchLog(1, ({0: 1},), 1_700_000_000_000)]
    rows = pa.table({"partition": [0]})
    spec = Spec("nexmark.q12")
    assert recomputed(rows, [], logs, spec, rules(spec)) == Watermarks(tuple(logs), None, False)
    spec = Spec("passthrough")
    assert recomputed(rows, [], logs[:1], spec, rules(spec)).checked
