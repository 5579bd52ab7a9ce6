"""Watermarks of events before 1970, by each engine's own rule; the oracles are plain Python and sums over all rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.bench.engines.flink import queries as flink
from streamgauge.bench.engines.spark import queries as spark
from streamgauge.bench.oracle.batches import BatchLog
from streamgauge.bench.oracle.duck import answer, ask
from streamgauge.bench.oracle.late_rows import expectation
from streamgauge.bench.workloads import Spec
from streamgauge.records.rules import LEAST_MS, Rules
from tests.engines.hand import row, table

S = 1_000_000
WINDOW = Spec("windowed_aggregation", "name", "amount", window_us=10 * S, watermark_ms=5_000)
FLINK, SPARK = flink.rules(WINDOW), spark.rules(WINDOW)


def rows(seconds: list[float]) -> pa.Table:
    offered = pa.Table.from_batches([table([row(n, at) for n, at in enumerate(seconds)])])
    for name, values in {"partition": [0] * len(seconds), "row": range(len(seconds))}.items():
        offered = offered.append_column(name, pa.array(values, pa.int64()))
    return offered


def logs(seconds: list[float], begins_ms: int, delay_ms: int) -> list[BatchLog]:
    """The log of an engine that takes one event at a time: floor to ms, minus the delay, no way back."""
    found, watermark = [], begins_ms
    for number, second in enumerate(seconds):
        found.append(BatchLog(number, ({0: number + 1},), watermark))
        watermark = max(watermark, round(second * S) // 1000 - delay_ms)
    return found


SECONDS = st.lists(st.integers(-40_000_000, 40_000_000).map(lambda us: us / S), min_size=1, max_size=25)
QUERIES = (
    WINDOW,
    replace(WINDOW, slide_us=5 * S),
    Spec("sessions", "name", "amount", window_us=3 * S, watermark_ms=5_000),
    Spec("deduplication", "name", None, window_us=5 * S, watermark_ms=5_000),
    Spec("chained_windows", "name", "amount", window_us=7 * S, watermark_ms=5_000),
)


@pytest.mark.parametrize("spec", QUERIES, ids=lambda spec: spec.query)
@settings(max_examples=12, deadline=None)
@given(seconds=SECONDS)
def test_nothing_of_a_stream_in_order_is_late_on_flink_whenever_it_happened(spec: Spec, seconds: list[float]) -> None:
    seconds = sorted(seconds)
    offered = rows(seconds)
    found = expectation(offered, logs(seconds, LEAST_MS, 5_000), spec, flink.rules(spec))
    assert (found.late, found.late_events, found.early_events, found.wrong_watermark) == (0, 0, 0, None)
    order = [(name, "ascending") for name in ask(spec, (offered,)).column_names]
    assert answer(found).sort_by(order) == ask(spec, (offered.drop_columns(["partition", "row"]),)).sort_by(order)


@given(seconds=SECONDS)
def test_the_events_that_each_engine_takes_are_those_of_plain_python(seconds: list[float]) -> None:
    for rules, begins_ms in ((FLINK, LEAST_MS), (SPARK, 0)):
        log = logs(seconds, begins_ms, 5_000)
        kept, before = [], begins_ms
        for number, second in enumerate(seconds):
            us = round(second * S)
            late_ms = log[number].watermark_ms if rules is FLINK else before
            if (us // (10 * S) + 1) * 10_000 > late_ms:
                kept.append(number)
            before = log[number].watermark_ms
        found = expectation(rows(seconds), log, WINDOW, rules)
        assert found.wrong_watermark is None
        assert [part.frames[0]["seq"].to_pylist() for part in found.parts] == [kept]
        assert found.late_events == len(seconds) - len(kept)
        assert found.early_events == (sum(second < 0 for second in seconds) if rules is SPARK else 0)


def test_spark_drops_what_ends_before_1970_and_flink_takes_it() -> None:
    seconds = [-60.0, -20.0, -0.0000005, 0.0, 12.0]
    spark_s = expectation(rows(seconds), logs(seconds, 0, 5_000), WINDOW, SPARK)
    assert (spark_s.late_events, spark_s.early_events, answer(spark_s).num_rows) == (2, 2, 2)
    flink_s = expectation(rows(seconds), logs(seconds, LEAST_MS, 5_000), WINDOW, FLINK)
    assert (flink_s.late_events, flink_s.early_events, answer(flink_s).num_rows) == (0, 0, 4)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(-(10**16), 10**16), min_size=1, max_size=20))
def test_the_hour_of_a_bid_is_that_of_the_clock_whenever_it_happened(times_us: list[int]) -> None:
    count = len(times_us)
    bids = pa.table({
        "seq": range(count), "kind": ["bid"] * count, "auction": [1] * count, "bidder": [2] * count,
        "price": [2_000_000] * count, "extra": ["abcc"] * count,
        "event_ts": pa.array(times_us, pa.int64()).cast(pa.timestamp("us", tz="UTC")),
    })  # fmt: skip
    hours = [(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)).hour for us in times_us]
    wanted = [
        "dayTime" if 8 <= hour <= 18 else "nightTime" if hour <= 6 or hour >= 20 else "otherTime" for hour in hours
    ]
    assert ask(Spec("nexmark.q14"), (bids,))["bid_time_type"].to_pylist() == wanted


@pytest.mark.parametrize(("rules", "logged", "implied"), [(FLINK, 0, "no watermark"), (SPARK, LEAST_MS, "0 ms")])
def test_another_begin_than_the_engine_s_own_is_wrong(rules: Rules, logged: int, implied: str) -> None:
    found = expectation(rows([1.0]), [BatchLog(0, ({0: 1},), logged)], WINDOW, rules)
    assert str(found.wrong_watermark).endswith(f"its rows imply {implied}")
