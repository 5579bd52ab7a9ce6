"""Runs the hard queries on a finite stream made for them: checks answers, records state growth and watermarks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise, product
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from streamgauge.bench import workloads
from streamgauge.bench.answers.in_session import Outcome, attempted, in_batch, in_streaming
from streamgauge.bench.answers.in_session import stream as streamed
from streamgauge.bench.driver.replay import wire_schema
from streamgauge.bench.engines.spark.engine import GLOBAL_WATERMARK, PROVIDER, ROCKSDB, settings
from streamgauge.bench.engines.spark.finite import FiniteRun, with_sentinel
from streamgauge.bench.workloads import Spec
from streamgauge.records.answers import MODES, Example, HardAnswer, HardQueries, Mode

SECOND_US = 1_000_000
END_US = 10**15  # the sentinel's event time, beyond every window
#: micro-batches into which the events are cut
BATCHES = 8
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
Conf = Mapping[str, str] | None
Given = tuple[tuple[tuple[int, int], ...], ...]
#: the query of the worked example of per-operator watermarks; WORKED and LATE are (value, second) by micro-batch,
#: and LATE has a late 9
EXAMPLE = Spec("chained_windows", "name", "amount", 3 * SECOND_US, offset_us=SECOND_US)
WORKED: Given = (((6, 1), (4, 2), (5, 3)), ((7, 4),))
LATE: Given = (((6, 1),), ((7, 4),), ((1, 20),), ((9, 2),), ((1, 21),))


def rows(seconds: Sequence[int], amounts: Sequence[int], names: Sequence[str | None]) -> pa.Table:
    """Table of events in the order in which they come; seconds are their event times."""
    count = len(seconds)
    at_us = np.asarray(seconds, np.int64) * SECOND_US
    numbers = np.arange(count, dtype=np.int64)
    values = {name: pa.array(numbers) for name in ("seq", "offered_wall", "event_wall")}
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


def stream(spark: SparkSession, spec: Spec, batches: Sequence[pa.Table], work: Path, conf: Conf = None) -> FiniteRun:
    """Runs a query in streaming on these micro-batches and a final sentinel."""
    return streamed(spark, spec, _ended(batches), work, _needs(spec, conf))


def _ended(batches: Sequence[pa.Table]) -> list[pa.Table]:
    return [*batches, with_sentinel(batches[0], END_US)]


def _needs(spec: Spec, conf: Conf) -> Mapping[str, str]:
    return {**({PROVIDER: ROCKSDB} if workloads.find(spec.query).own_state else {}), **(conf or {})}


def slices(table: pa.Table, size: int) -> list[pa.Table]:
    return [table.slice(first, size) for first in range(0, table.num_rows, size)]


def offered(table: pa.Table) -> pa.Table:
    """Adds the columns partition and row, which the oracle needs, as of a single queue."""
    places = {"partition": np.zeros(table.num_rows, np.int64), "row": np.arange(table.num_rows)}
    for name, values in places.items():
        table = table.append_column(name, pa.array(values, pa.int64()))
    return table


def judge(
    spark: SparkSession, spec: Spec, mode: Mode, table: pa.Table, batch_rows: int, work: Path, conf: Conf = None
) -> Outcome:
    """Compares a query's answer with DuckDB's, which in streaming leaves out the rows that the run's logs show as late.

    Returns the answer, and the micro-batches in streaming.
    """
    needs = _needs(spec, conf)
    if mode == "streaming":
        return in_streaming(spark, spec, offered(table), _ended(slices(table, batch_rows)), work, needs)
    with settings(spark, needs):
        return in_batch(spec, [spark.createDataFrame(table)] * workloads.find(spec.query).streams, table)


def batch_rows(count: int) -> int:
    return -(-count // BATCHES)


def longest_s(count: int) -> int:
    """Longest delay among so many events, seconds: enough to be late, as the watermark lies two micro-batches back."""
    return 3 * batch_rows(count)


def run_hard(spark: SparkSession, count: int, percent: float, work: Path, conf: Conf = None) -> Iterator[HardAnswer]:
    """Yields an answer to every hard query in both modes, on so many events; a query that fails leaves its reason.

    percent: of the events, which come late.
    """
    with settings(spark, dict(conf or {})):
        pass  # a setting that cannot be set fails here: it is no fault of a query
    table = events(count, percent / 100, longest_s(count))
    for mode, spec in product(MODES, SPECS):
        run = partial(judge, spark, spec, mode, table, batch_rows(count), work / mode / spec.query, conf)
        answer, micro = attempted(spark, workloads.find(spec.query), mode, run)
        yield HardAnswer(**answer.fields, batches=tuple(batch.record(rows=False) for batch in micro))


def record_of(
    system: str, count: int, percent: float, answers: Iterable[HardAnswer], example: tuple[Example, ...] = ()
) -> HardQueries:
    """The record of a system's answers on so many events."""
    return HardQueries(
        system=system,
        disorder_percent=percent,
        events=count,
        disorder=percent / 100,
        longest_delay_s=longest_s(count),
        queries=tuple(answers),
        example=example,
    )


def run_example(spark: SparkSession, work: Path) -> tuple[Example, ...]:
    """Runs the worked example with a watermark for each operator and with one for all, then with a late element."""
    cases: tuple[tuple[str, Given, dict[str, str]], ...] = (
        ("a watermark for each operator", WORKED, {}),
        ("one watermark for all", WORKED, GLOBAL_WATERMARK),
        ("a late element", LATE, {}),
    )
    examples = []
    for name, given, conf in cases:
        numbered = [pair for batch in given for pair in batch]
        table = rows([at for _, at in numbered], [value for value, _ in numbered], ["a"] * len(numbered))
        ends = accumulate(map(len, given), initial=0)
        parts = [table.slice(first, last - first) for first, last in pairwise(ends)]
        run = stream(spark, EXAMPLE, parts, work / name, conf)
        made = {"name": name, "given": given, "batches": [batch.record() for batch in run.batches]}
        examples.append(Example.model_validate(made))
    return tuple(examples)
