"""Queries against DuckDB in batch; in streaming against the same query in batch, minus rightly dropped rows."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from streamgauge import workloads
from streamgauge.config import Workload
from streamgauge.errors import UserError
from streamgauge.link.check import answer, check
from streamgauge.link.connections import options_of
from streamgauge.link.oracle import BatchLog, expectation
from streamgauge.link.progress import batches_of
from streamgauge.link.sink import MeasuringSink
from streamgauge.link.source import Link
from streamgauge.workloads import Spec
from tests.link.hand import HandDriver, Row, row, sentinel, table

AGGREGATION = Spec("windowed_aggregation", "name", "amount", window_us=10_000_000)
JOIN = Spec("windowed_join", "name", "amount", window_us=10_000_000)


def some_rows(count: int, late: bool, seed: int = 1) -> list[Row]:
    """One event a second, a fifth of them up to 40 s back if late."""
    draw = random.Random(seed)
    back = [draw.choice([0, 0, 0, 0, draw.randrange(40)]) if late else 0 for _ in range(count)]
    return [
        row(n, 100 + max(0, n - back[n]), name=draw.choice("abc"), amount=draw.randrange(100)) for n in range(count)
    ]


def sql(rows: list[Row], query: str) -> list[tuple[Any, ...]]:
    """DuckDB over `events`, with the window's start in seconds as w (10 s windows)."""
    base = duckdb.connect()
    base.register("given", pa.Table.from_batches([table(rows)]).drop_columns(["event_ts"]))
    base.execute("create view events as select *, event_time // 10000000000 * 10 as w from given")
    return sorted(base.execute(query).fetchall(), key=repr)


def batch(spark: Any, rows: list[Row], spec: Spec, *columns: str) -> list[tuple[Any, ...]]:
    frames = [spark.createDataFrame(pa.Table.from_batches([table(rows)]))] * workloads.find(spec.query).streams
    found = workloads.run(frames, spec).selectExpr("unix_seconds(window_start) as w", *columns)
    return sorted((tuple(r) for r in found.collect()), key=repr)


@pytest.mark.spark
def test_aggregation_answers_as_duckdb_does(spark: Any) -> None:
    rows = some_rows(60, late=True)
    found = batch(spark, rows, AGGREGATION, "key", "events", "total", "mean", "event_wall", "offered_wall")
    wanted = "select w, name, count(*), sum(amount)::bigint, avg(amount), max(event_wall), max(offered_wall) from events group by all"
    assert found == sql(rows, wanted)


@pytest.mark.spark
def test_join_answers_as_duckdb_does(spark: Any) -> None:
    rows = some_rows(60, late=True)
    found = batch(spark, rows, JOIN, "key", "left_seq", "right_seq", "left_value", "right_value", "event_wall")
    wanted = """
        select a.w, a.name, a.seq, b.seq, a.amount, b.amount, greatest(a.event_wall, b.event_wall)
        from events a join events b using (w, name)
        where (a.event_time // 1000 + a.seq) % 2 = 0 and (b.event_time // 1000 + b.seq) % 2 = 1"""
    assert found == sql(rows, wanted)
    assert found


@pytest.fixture
def driver() -> Iterator[HandDriver]:
    hand = HandDriver()
    yield hand
    hand.close()


def stream(spark: Any, driver: HandDriver, place: Path, spec: Spec, batch_rows: int) -> dict[str, Any]:
    """Runs a query over what is offered, to its end; the figures that the oracle needs."""
    spark.dataSource.register(Link)
    spark.dataSource.register(MeasuringSink)
    options = options_of((driver.endpoint,), driver.attempt)
    streams = workloads.find(spec.query).streams
    roles = ["alone"] if streams == 1 else ["lead", "follow"]
    reader = spark.readStream.format("streamgauge").options(**options, batch_rows=batch_rows)
    result = workloads.run([reader.option("role", role).load() for role in roles], spec)
    writer = result.writeStream.format("streamgauge-sink").options(**options, output=str(place / "out"))
    query = writer.option("checkpointLocation", str(place / "check")).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    return {"batches": batches_of([json.loads(p.json) for p in query.recentProgress], streams)}


def offered(rows: list[Row]) -> pa.Table:
    found = pa.Table.from_batches([table(rows)])
    places = {"partition": pa.array([0] * len(rows), pa.int64()), "row": pa.array(range(len(rows)), pa.int64())}
    for name, values in places.items():
        found = found.append_column(name, values)
    return found


@pytest.mark.spark
@pytest.mark.parametrize("spec", [AGGREGATION, JOIN, replace(AGGREGATION, slide_us=5_000_000)])
def test_of_nothing_offered_nothing_is_expected(spark: Any, spec: Spec) -> None:
    nothing = offered([row(0, 0)]).slice(0, 0)
    assert answer(spark, expectation(nothing, [], spec)) == (0, 0)


@pytest.mark.spark
@pytest.mark.parametrize("late", [False, True], ids=["ordered", "disordered"])
@pytest.mark.parametrize(
    "spec", [AGGREGATION, JOIN, replace(AGGREGATION, slide_us=5_000_000)], ids=["aggregation", "join", "sliding"]
)
def test_streaming_answers_as_batch_does_minus_what_the_watermark_dropped(
    spark: Any, driver: HandDriver, tmp_path: Path, spec: Spec, late: bool
) -> None:
    rows = some_rows(90, late)
    driver.offer([*rows, sentinel(1e6)])
    figures = stream(spark, driver, tmp_path, spec, batch_rows=18)
    result = check(spark, offered(rows), figures, list(driver.reports.values()), spec)
    assert result.wrong is None
    assert result.reported_rows > 10
    assert (result.expected_late > 0) == late
    if spec is JOIN:
        assert result.reported_late == result.expected_late
    if not late:
        whole = workloads.run(
            [spark.createDataFrame(pa.Table.from_batches([table(rows)]))] * (2 if spec is JOIN else 1), spec
        )
        assert whole.count() == result.reported_rows


def test_late_rows_are_those_whose_window_had_ended_at_the_watermark_before() -> None:
    rows = offered([row(0, 5), row(1, 25), row(2, 9), row(3, 21)])
    logs = [BatchLog(0, ({0: 2},), 0), BatchLog(1, ({0: 3},), 25_000), BatchLog(2, ({0: 4},), 25_000)]
    # batch 1 takes row 2 against the watermark 0 of batch 0; batch 2 takes row 3, in [20, 30), against 25
    assert expectation(rows, logs, AGGREGATION).late == 0
    early = [BatchLog(0, ({0: 2},), 10_000), *logs[1:]]
    found = expectation(rows, early, AGGREGATION)
    assert found.late == 1  # [0, 10) had ended at 10
    assert found.parts[0].frames[0]["seq"].to_pylist() == [0, 1, 3]


def test_a_log_with_holes_is_no_basis() -> None:
    with pytest.raises(ValueError, match="missing"):
        expectation(offered([row(0, 5)]), [BatchLog(1, ({0: 1},), 0)], AGGREGATION)
    with pytest.raises(ValueError, match="no batch has taken"):
        expectation(offered([row(0, 5), row(1, 6)]), [BatchLog(0, ({0: 1},), 0)], AGGREGATION)


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
        ({"value": "name"}, "workloads.w.value: name is no number; allowed: amount"),
        ({"slide": "3s"}, "workloads.w: window 10s must be a whole multiple, 1 or more, of its slide"),
        ({"window": "0s"}, "workloads.w: window 0s must be a whole multiple, 1 or more, of its slide"),
        ({"watermark": "10us"}, "workloads.w.watermark: 10us is no whole number of ms"),
    ],
)
def test_a_workload_that_cannot_be_is_told_in_one_line(change: dict[str, Any], message: str) -> None:
    given = {"name": "w", "query": "windowed_aggregation", "key": "name", "value": "amount"} | change
    with pytest.raises(UserError) as told:
        Spec.of(Workload.model_validate(given), {"name": "string", "amount": "int64"})
    assert str(told.value) == message
