"""Queries in streaming against DuckDB, without rightly dropped rows; what an engine may claim wrongly is found."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench import workloads
from streamgauge.bench.engines.spark import queries
from streamgauge.bench.engines.spark.connections import options_of
from streamgauge.bench.engines.spark.engine import settings
from streamgauge.bench.engines.spark.progress import batches_of
from streamgauge.bench.engines.spark.sink import MeasuringSink
from streamgauge.bench.engines.spark.source import Link
from streamgauge.bench.oracle.batches import BatchLog
from streamgauge.bench.oracle.check import check
from streamgauge.bench.oracle.duck import size_and_checksum
from streamgauge.bench.oracle.late_rows import expectation
from streamgauge.bench.workloads import Spec
from streamgauge.config import Workload
from streamgauge.records.rules import Rules
from streamgauge.records.trial import SystemFigures
from tests.engines.hand import HandDriver, Row, row, sentinel, table

AGGREGATION = Spec("windowed_aggregation", "name", "amount", window_us=10_000_000)
RULES = queries.rules(AGGREGATION)
JOIN = Spec("windowed_join", "name", "amount", window_us=10_000_000)
SLIDING = replace(AGGREGATION, slide_us=5_000_000)
PASSING = Spec("passthrough", "name", "amount")


def some_rows(count: int, late: bool, seed: int = 1) -> list[Row]:
    """Makes an event a second; if late, a fifth of them up to 60 s back."""
    draw = random.Random(seed)
    back = [draw.choice([0, 0, 0, 0, draw.randrange(60)]) if late else 0 for _ in range(count)]
    return [
        row(n, 100 + max(0, n - back[n]), name=draw.choice("abc"), amount=draw.randrange(100)) for n in range(count)
    ]


@pytest.fixture
def driver() -> Iterator[HandDriver]:
    hand = HandDriver()
    yield hand
    hand.close()


def stream(spark: Any, driver: HandDriver, place: Path, spec: Spec, batch_rows: int) -> SystemFigures:
    """Runs a query over what is offered, to its end; the figures that the oracle needs."""
    spark.dataSource.register(Link)
    spark.dataSource.register(MeasuringSink)
    options = options_of((driver.endpoint,), driver.attempt)
    streams = workloads.find(spec.query).streams
    roles = ["alone"] if streams == 1 else ["lead", "follow"]
    reader = spark.readStream.format("streamgauge").options(**options, batch_rows=batch_rows)
    result = queries.run([reader.option("role", role).load() for role in roles], spec)
    writer = result.writeStream.format("streamgauge-sink").options(**options, output=str(place / "out"))
    query = writer.option("checkpointLocation", str(place / "check")).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    batches: list[Any] = batches_of([json.loads(p.json) for p in query.recentProgress], streams)
    return {"batches": batches}


def offered(rows: list[Row]) -> pa.Table:
    events = pa.Table.from_batches([table(rows)])
    places = {"partition": pa.array([0] * len(events), pa.int64()), "row": pa.array(range(len(events)), pa.int64())}
    for name, values in places.items():
        events = events.append_column(name, values)
    return events


def test_sentinels_lie_beyond_every_operator_that_lags() -> None:
    for query in workloads.registry():
        assert len(query.lags) in (0, query.streams)
    spec = Spec("windowed_aggregation", "k", "v", watermark_ms=3000)
    beyond_us = [spec.beyond_us(Rules(spec.operators(), delay_us)) for delay_us in (0, 3_000_000, 7_000_000)]
    assert beyond_us == [23_000_000, 23_000_000, 27_000_000], "as the engine declares where that is longer"
    lagging = Rules((replace(spec.operators()[0], lag_us=5),))
    assert spec.beyond_us(lagging) == 23_000_005


@pytest.mark.parametrize("spec", [AGGREGATION, JOIN, SLIDING, PASSING])
def test_of_nothing_offered_nothing_is_expected(spec: Spec) -> None:
    nothing = offered([row(0, 0)]).slice(0, 0)
    assert size_and_checksum(expectation(nothing, [], spec, queries.rules(spec))) == (0, 0)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("spec", "late"),
    [
        pytest.param(AGGREGATION, False, id="aggregation of ordered events", marks=pytest.mark.prove),
        pytest.param(AGGREGATION, True, id="aggregation of disordered events"),
        pytest.param(JOIN, False, id="join of ordered events"),
        pytest.param(JOIN, True, id="join of disordered events"),
        pytest.param(SLIDING, False, id="sliding windows of ordered events", marks=pytest.mark.prove),
        pytest.param(SLIDING, True, id="sliding windows of disordered events"),
        pytest.param(PASSING, True, id="disordered events passed on"),  # none is late in any order
    ],
)
def test_streaming_answers_as_duckdb_but_for_what_the_watermark_dropped(
    spark: Any, driver: HandDriver, tmp_path: Path, spec: Spec, late: bool
) -> None:
    rows = some_rows(90, late)
    driver.offer([*rows, sentinel(1e6)])
    figures = stream(spark, driver, tmp_path, spec, batch_rows=23)
    reports: list[Any] = list(driver.reports.values())
    result = check(offered(rows), figures, reports, spec, queries.rules(spec))
    assert (result.wrong, result.watermarks_checked) == (None, True)
    assert result.reported_rows > 10
    assert (result.expected_late > 0) == (late and spec is not PASSING)
    assert result.reported_late == result.expected_late


@pytest.mark.spark
@pytest.mark.parametrize("query", ["sessions", "windowed_aggregation"])
def test_groups_dropped_of_several_partitions_are_counted_as_the_engine_does(
    spark: Any, tmp_path: Path, query: str
) -> None:
    """Twins in both partitions: of a window they are one group, of a session two, as each task groups its own first."""
    twins = [[{**one, "seq": 2 * one["seq"] + n} for one in some_rows(90, late=True)] for n in range(2)]
    spec = replace(AGGREGATION, query=query, window_us=3_000_000)
    hand = HandDriver(partitions=2)
    try:
        for partition, rows in enumerate(twins):
            hand.offer([*rows, sentinel(1e6)], partition)
        with settings(spark, {"spark.sql.shuffle.partitions": "3"}):
            figures = stream(spark, hand, tmp_path, spec, batch_rows=46)
    finally:
        hand.close()
    parts = [offered(rows) for rows in twins]
    place = parts[1].column_names.index("partition")
    parts[1] = parts[1].set_column(place, "partition", pa.array([1] * 90, pa.int64()))
    reports: list[Any] = list(hand.reports.values())
    result = check(pa.concat_tables(parts), figures, reports, spec, queries.rules(spec))
    assert (result.wrong, result.late_counted) == (None, "groups")
    assert result.reported_late == result.expected_late > 0


def test_late_rows_are_those_whose_window_had_ended_at_the_watermark_before() -> None:
    """Batches take seconds 5 and 25, then 9, then 21: the third is in time, its window [20, 30) ends after 25."""
    rows = offered([row(0, 5), row(1, 25), row(2, 9), row(3, 21), row(4, 8), row(5, 9)])
    logs = [BatchLog(n, ({0: end},), ms) for n, (end, ms) in enumerate([(2, 0), (3, 25_000), (4, 25_000), (6, 25_000)])]
    due = expectation(rows, logs, AGGREGATION, RULES)
    # batch 1 takes row 2 against the watermark 0 of batch 0; batch 3 takes 4 and 5, one group, against 25
    assert (due.late, due.wrong_watermark) == (1, None)
    assert due.parts[0].frames[0]["seq"].to_pylist() == [0, 1, 2, 3]
    for query, late in (("top_n", 1), ("deduplication", 3)):  # which drops row 3, too
        spec = replace(AGGREGATION, query=query)
        assert expectation(rows, logs, spec, queries.rules(spec)).late == late


def test_what_an_engine_logs_changes_no_answer() -> None:
    rows = offered([row(0, 5), row(1, 25), row(2, 9)])
    early = [BatchLog(0, ({0: 2},), 10_000), BatchLog(1, ({0: 3},), 25_000)]
    due = expectation(rows, early, AGGREGATION, RULES)
    assert due.wrong_watermark == "watermark of batch 0: the engine logged 10000 ms, its rows imply 0 ms"
    assert (due.late, due.parts[0].masks) == (0, (None,))


def test_a_log_with_holes_is_no_basis() -> None:
    with pytest.raises(ValueError, match="missing"):
        expectation(offered([row(0, 5)]), [BatchLog(1, ({0: 1},), 0)], AGGREGATION, RULES)
    with pytest.raises(ValueError, match="taken by no batch"):
        expectation(offered([row(0, 5), row(1, 6)]), [BatchLog(0, ({0: 1},), 0)], AGGREGATION, RULES)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"query": "top"},
            f"workloads.w.query: found 'top', allowed: {', '.join(q.name for q in workloads.REGISTRY)}, "
            "nexmark.q0 to nexmark.q23",
        ),
        ({"key": None}, "workloads.w.key: windowed_aggregation needs it; name one of name, amount"),
        ({"key": "nme"}, "workloads.w.key: found 'nme', allowed: name, amount (source.columns)"),
        ({"value": "name"}, "workloads.w.value: name is not numeric; allowed: amount"),
        ({"slide": "3s"}, "workloads.w: window 10s must be a whole multiple, 1 or more, of its slide"),
        ({"window": "0s"}, "workloads.w: window 0s must be a whole multiple, 1 or more, of its slide"),
        ({"watermark": "10us"}, "workloads.w.watermark: 10us is not a whole number of ms"),
    ],
)
def test_a_workload_that_cannot_be_is_told_in_one_line(change: dict[str, Any], message: str) -> None:
    given = {"name": "w", "query": "windowed_aggregation", "key": "name", "value": "amount"} | change
    with pytest.raises(UserError) as problem:
        Spec.of(Workload.model_validate(given), {"name": "string", "amount": "int64"})
    assert str(problem.value) == message


@pytest.mark.parametrize(
    ("query", "given", "message"),
    [
        ("q15", {"window": "10s"}, "workloads.w.window: found 10s, allowed for nexmark.q15: 1d, as it asks by day"),
        ("q16", {"window": "25h"}, "workloads.w.window: found 25h, allowed for nexmark.q16: 1d, as it asks by day"),
        ("q11", {"key": "auction"}, "workloads.w.key: found 'auction', allowed for nexmark.q11: bidder"),
    ],
)
def test_a_question_s_own_window_and_key_are_not_the_user_s(query: str, given: dict[str, str], message: str) -> None:
    columns = dict.fromkeys(workloads.find(f"nexmark.{query}").columns, "string")
    of = partial(Spec.of, columns=columns | {"bidder": "int64", "auction": "int64"}, whole=True)
    right = {"name": "w", "query": f"nexmark.{query}", "window": "24h", "watermark": "5s"}
    right |= {"key": "bidder"} if query == "q11" else {}
    assert of(Workload.model_validate(right)).window_us == 86_400_000_000
    with pytest.raises(UserError) as problem:
        of(Workload.model_validate(right | given))
    assert str(problem.value) == message
