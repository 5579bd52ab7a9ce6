"""Runs the hard queries on a finite stream made for them: checks answers, records state growth and watermarks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from streamgauge.bench import workloads
from streamgauge.bench.answers.record import MODES, Mode, Record, judged, unsupported
from streamgauge.bench.driver.replay import wire_schema
from streamgauge.bench.engines.spark import queries
from streamgauge.bench.engines.spark.engine import GLOBAL_WATERMARK, PROVIDER, ROCKSDB, settings
from streamgauge.bench.engines.spark.finite import FiniteRun, MicroBatch, run_finite, with_sentinel
from streamgauge.bench.oracle.duck import answer, ask, size_and_hash
from streamgauge.bench.oracle.late_rows import expectation
from streamgauge.bench.workloads import Spec

SECOND_US = 1_000_000
END_US = 10**15  # the sentinel's event time, beyond every window
SCHEMA = wire_schema({"name": "string", "amount": "int64"}, line=False)
SPECS = (
    Spec("custom_windows", "name", "amount", 10 * SECOND_US, mark="7"),
    Spec("chained_windows", "name", "amount", 10 * SECOND_US, offset_us=SECOND_US),
    Spec("sessions", "name", "amount", 3 * SECOND_US),
    Spec("deduplication", "name", None, 10 * SECOND_US, watermark_ms=10_000),
    Spec("outer_join", "name", "amount", 4 * SECOND_US),
    Spec("top_n", "name", "amount", 10 * SECOND_US, top=3),
    Spec("incremental_join", "name", "amount", 10 * SECOND_US, mark="7"),
)
#: the query of the worked example of per-operator watermarks; WORKED and LATE are (value, second) by micro-batch,
#: and LATE has a late 9
EXAMPLE = Spec("chained_windows", "name", "amount", 3 * SECOND_US, offset_us=SECOND_US)
WORKED = (((6, 1), (4, 2), (5, 3)), ((7, 4),))
LATE = (((6, 1),), ((7, 4),), ((1, 20),), ((9, 2),), ((1, 21),))


def rows(seconds: Sequence[int], amounts: Sequence[int], names: Sequence[str | None]) -> pa.Table:
    """Table of events in the order in which they come; seconds are their event times."""
    count = len(seconds)
    at_us = np.asarray(seconds, np.int64) * SECOND_US
    numbers = np.arange(count, dtype=np.int64)
    values: dict[str, Any] = {name: pa.array(numbers) for name in ("seq", "offered_wall", "event_wall")}
    values |= {"event_time": pa.array(at_us * 1000), "ingestion_time": pa.array(at_us * 1000)}
    values |= {"event_ts": pa.array(at_us).cast(pa.timestamp("us", tz="UTC")), "sentinel": pa.array([False] * count)}
    values |= {"name": pa.array(names, pa.string()), "amount": pa.array(amounts, pa.int64())}
    return pa.Table.from_arrays([values[field.name] for field in SCHEMA], schema=SCHEMA)


def events(count: int, disorder: float, longest_s: int, seed: int = 1) -> pa.Table:
    """Makes one event per second of event time; the share `disorder` of them comes late, by up to longest_s seconds.

    Of the amounts, a tenth is 7, the mark of some SPECS.
    """
    draw = np.random.default_rng(seed)
    late = draw.random(count) < disorder
    comes = np.arange(count) + np.where(late, draw.integers(1, longest_s + 1, count), 0)
    seconds = 1000 + np.argsort(comes, kind="stable")
    return rows(seconds.tolist(), draw.integers(0, 10, count).tolist(), draw.choice(list("aaabc"), count).tolist())


def stream(
    spark: SparkSession, spec: Spec, batches: Sequence[pa.Table], work: Path, conf: Mapping[str, str] | None = None
) -> FiniteRun:
    """Runs a query in streaming on these micro-batches and a final sentinel."""
    query = workloads.find(spec.query)
    given = [*batches, with_sentinel(batches[0], END_US)]
    conf = _needs(spec, conf)
    return run_finite(spark, lambda frames: queries.run(frames, spec), given, work, streams=query.streams, conf=conf)


def _needs(spec: Spec, conf: Mapping[str, str] | None) -> Mapping[str, str]:
    return {**({PROVIDER: ROCKSDB} if workloads.find(spec.query).own_state else {}), **(conf or {})}


def slices(table: pa.Table, size: int) -> list[pa.Table]:
    return [table.slice(first, size) for first in range(0, table.num_rows, size)]


def offered(table: pa.Table) -> pa.Table:
    """Adds the columns partition and row, which the oracle needs, as of a single queue."""
    places = {"partition": np.zeros(table.num_rows, np.int64), "row": np.arange(table.num_rows)}
    for name, values in places.items():
        table = table.append_column(name, pa.array(values, pa.int64()))
    return table


def batch_output(spark: SparkSession, spec: Spec, table: pa.Table, conf: Mapping[str, str] | None = None) -> pa.Table:
    with settings(spark, _needs(spec, conf)):
        frames = [spark.createDataFrame(table)] * workloads.find(spec.query).streams
        output: pa.Table = queries.run(frames, spec).toArrow()
    return output


def judge(
    spark: SparkSession,
    spec: Spec,
    mode: Mode,
    table: pa.Table,
    batch_rows: int,
    work: Path,
    conf: Mapping[str, str] | None = None,
) -> tuple[Record, tuple[MicroBatch, ...]]:
    """Compares a query's answer with DuckDB's, which in streaming leaves out the rows that the run's logs show as late.

    Returns the record, and the micro-batches in streaming.
    """
    query, rules = workloads.find(spec.query), queries.rules(spec.query)
    if mode == "batch":
        began = time.monotonic()
        output = batch_output(spark, spec, table, conf)
        wanted = ask(spec, (table,) * query.streams)
        answers = size_and_hash(output, query.rule), size_and_hash(wanted, query.rule)
        seconds = time.monotonic() - began
        return judged(query, mode, *answers, seconds, table.num_rows, output.nbytes, rules.late_counted), ()
    run = stream(spark, spec, slices(table, batch_rows), work, conf)
    due = expectation(offered(table), run.logs(), spec, rules)
    answers = size_and_hash(run.output, query.rule), size_and_hash(answer(due), query.rule)
    seconds = sum(batch.seconds for batch in run.batches)
    peak = max(sum(operator.rows for operator in batch.operators) for batch in run.batches)
    record = judged(
        query, mode, *answers, seconds, table.num_rows, run.output.nbytes, rules.late_counted, due.late, run.dropped,
        peak, due.wrong_watermark,
    )  # fmt: skip
    return record, run.batches


def run_hard(
    spark: SparkSession,
    work: Path,
    *,
    count: int = 400,
    disorder: float = 0.2,
    batches: int = 8,
    conf: Mapping[str, str] | None = None,
    seen: Callable[[Record], None] | None = None,
) -> dict[str, Any]:
    """Runs every hard query in both modes and gives each record to `seen`; a query that fails leaves its reason."""
    batch_rows = -(-count // batches)
    with settings(spark, dict(conf or {})):
        pass  # a setting that cannot be set fails here: it is no fault of a query
    longest_s = 3 * batch_rows  # enough to be late: the watermark lies two micro-batches back
    table = events(count, disorder, longest_s)
    outcomes: list[dict[str, Any]] = []
    for mode, spec in product(MODES, SPECS):
        try:
            record, micro = judge(spark, spec, mode, table, batch_rows, work / mode / spec.query, conf)
        except Exception as problem:
            record, micro = unsupported(spark, workloads.find(spec.query), mode, problem), ()
        if seen is not None:
            seen(record)
        outcomes.append({**record.to_dict(), "batches": [batch.to_dict(rows=False) for batch in micro]})
    return {"events": count, "disorder": disorder, "longest_delay_s": longest_s, "queries": outcomes}


def run_example(spark: SparkSession, work: Path) -> list[dict[str, Any]]:
    """Runs the worked example with a watermark for each operator and with one for all, then with a late element."""
    cases: tuple[tuple[str, Any, dict[str, str]], ...] = (
        ("a watermark for each operator", WORKED, {}),
        ("one watermark for all", WORKED, GLOBAL_WATERMARK),
        ("a late element", LATE, {}),
    )
    records = []
    for name, given, conf in cases:
        numbered = [pair for batch in given for pair in batch]
        table = rows([at for _, at in numbered], [value for value, _ in numbered], ["a"] * len(numbered))
        ends = accumulate(map(len, given), initial=0)
        parts = [table.slice(first, last - first) for first, last in pairwise(ends)]
        run = stream(spark, EXAMPLE, parts, work / name, conf)
        records.append({"name": name, "given": given, "batches": [batch.to_dict() for batch in run.batches]})
    return records
