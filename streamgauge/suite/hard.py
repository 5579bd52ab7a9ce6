"""The hard queries on a finite stream made for them: answers checked, state growth and watermarks recorded."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from streamgauge import workloads
from streamgauge.driver.replay import wire_schema
from streamgauge.link.check import answer
from streamgauge.link.checksum import checksum, result_columns
from streamgauge.link.engine import PROVIDER, ROCKSDB
from streamgauge.link.finite import GLOBAL_WATERMARK, FiniteRun, run_finite, with_sentinel
from streamgauge.link.oracle import Expectation, Kept, expectation
from streamgauge.suite.hard_answers import duckdb_answer
from streamgauge.workloads import Spec

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
#: value at second: the worked example of per-operator watermarks, in its micro-batches, and one with a late 9
EXAMPLE = Spec("chained_windows", "name", "amount", 3 * SECOND_US, offset_us=SECOND_US)
WORKED = (((6, 1), (4, 2), (5, 3)), ((7, 4),))
LATE = (((6, 1),), ((7, 4),), ((1, 20),), ((9, 2),), ((1, 21),))


def rows(seconds: Sequence[int], amounts: Sequence[int], names: Sequence[str | None]) -> pa.Table:
    """Events in the order in which they come."""
    count = len(seconds)
    at_us = np.asarray(seconds, np.int64) * SECOND_US
    numbers = np.arange(count, dtype=np.int64)
    values: dict[str, Any] = {name: pa.array(numbers) for name in ("seq", "offered_wall", "event_wall")}
    values |= {"event_time": pa.array(at_us * 1000), "ingestion_time": pa.array(at_us * 1000)}
    values |= {"event_ts": pa.array(at_us).cast(pa.timestamp("us", tz="UTC")), "sentinel": pa.array([False] * count)}
    values |= {"name": pa.array(names, pa.string()), "amount": pa.array(amounts, pa.int64())}
    return pa.Table.from_arrays([values[field.name] for field in SCHEMA], schema=SCHEMA)


def events(count: int, disorder: float, longest_s: int, seed: int = 1) -> pa.Table:
    """An event a second; that share of them comes late, by up to longest_s. A tenth of the values is 7."""
    draw = np.random.default_rng(seed)
    late = draw.random(count) < disorder
    comes = np.arange(count) + np.where(late, draw.integers(1, longest_s + 1, count), 0)
    seconds = 1000 + np.argsort(comes, kind="stable")
    return rows(seconds.tolist(), draw.integers(0, 10, count).tolist(), draw.choice(list("aaabc"), count).tolist())


def stream(spark: SparkSession, spec: Spec, batches: Sequence[pa.Table], work: Path, **conf: str) -> FiniteRun:
    """These micro-batches and then a sentinel."""
    query = workloads.find(spec.query)
    conf = {PROVIDER: ROCKSDB, **conf} if query.rocksdb else conf
    given = [*batches, with_sentinel(batches[0], END_US)]
    return run_finite(spark, lambda frames: query.run(frames, spec), given, work, streams=query.streams, conf=conf)


def slices(table: pa.Table, size: int) -> list[pa.Table]:
    return [table.slice(first, size) for first in range(0, table.num_rows, size)]


def offered(table: pa.Table) -> pa.Table:
    """With the places that the oracle wants: one queue."""
    places = {"partition": np.zeros(table.num_rows, np.int64), "row": np.arange(table.num_rows)}
    for name, values in places.items():
        table = table.append_column(name, pa.array(values, pa.int64()))
    return table


def batch_answer(spark: SparkSession, spec: Spec, table: pa.Table) -> tuple[int, int]:
    """Rows and checksum."""
    return answer(spark, Expectation((Kept(spec, (table,) * workloads.find(spec.query).streams),), 0))


def size_and_hash(run: FiniteRun) -> tuple[int, int]:
    output = run.output
    return output.num_rows, checksum(output.select(result_columns(output.schema.names)))


def judge(spark: SparkSession, spec: Spec, table: pa.Table, batch_rows: int, work: Path) -> list[dict[str, Any]]:
    """A record for each mode: the batch answer against DuckDB's, the streaming answer against batch."""
    began = time.monotonic()
    size, total = batch_answer(spark, spec, table)
    seconds = time.monotonic() - began
    known = duckdb_answer(spec, table)
    status = "correct" if (size, total) == (known.num_rows, checksum(known)) else "wrong"
    records = [_record(spec, "batch", size, total, seconds, status=status)]
    run = stream(spark, spec, slices(table, batch_rows), work)
    wanted = expectation(offered(table), run.logs(), spec)
    found = size_and_hash(run)
    status = "correct" if found == answer(spark, wanted) else "wrong"
    if workloads.find(spec.query).drops_counted == "rows" and run.dropped != wanted.late:
        status = "wrong"
    seconds = sum(batch.seconds for batch in run.batches)
    record = _record(spec, "streaming", *found, seconds, status=status)
    record |= {"late_drops_expected": wanted.late, "late_drops_reported": run.dropped}
    return [*records, record | {"batches": [batch.to_dict(rows=False) for batch in run.batches]}]


def run_hard(
    spark: SparkSession, work: Path, *, count: int = 400, disorder: float = 0.2, batches: int = 8
) -> dict[str, Any]:
    """Every hard query in both modes; a query that fails leaves its reason. And the worked example."""
    batch_rows = -(-count // batches)
    longest_s = 3 * batch_rows  # late by the watermark, which lies two micro-batches back
    table = events(count, disorder, longest_s)
    found: list[dict[str, Any]] = []
    for spec in SPECS:
        try:
            found += judge(spark, spec, table, batch_rows, work / spec.query)
        except Exception as problem:
            reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
            found.append({"query": spec.query, "mode": "both", "status": "unsupported", "reason": reason})
    given = {"events": count, "disorder": disorder, "longest_delay_s": longest_s}
    return given | {"queries": found, "example": run_example(spark, work / "example")}


def run_example(spark: SparkSession, work: Path) -> list[dict[str, Any]]:
    """The worked example with a watermark for each operator and with one for all, then with a late element."""
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
        run = stream(spark, EXAMPLE, parts, work / name, **conf)
        records.append({"name": name, "given": given, "batches": [batch.to_dict() for batch in run.batches]})
    return records


def _record(spec: Spec, mode: str, size: int, total: int, seconds: float, **more: Any) -> dict[str, Any]:
    fixed = {"query": spec.query, "mode": mode, "rows": size, "hash": f"{total:016x}", "seconds": round(seconds, 3)}
    return fixed | {"late_drops_expected": 0, "late_drops_reported": 0} | more
