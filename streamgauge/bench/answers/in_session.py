"""Asks a query in Spark's session, in batch or in streaming, and compares its answer with DuckDB's."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from streamgauge.base.errors import Outage
from streamgauge.bench.answers.record import Late, judged, short
from streamgauge.bench.engines.spark import queries
from streamgauge.bench.engines.spark.application import reason
from streamgauge.bench.engines.spark.engine import is_alive
from streamgauge.bench.engines.spark.finite import FiniteRun, MicroBatch, run_finite
from streamgauge.bench.oracle.duck import answer, ask, size_and_hash
from streamgauge.bench.oracle.late_rows import expectation
from streamgauge.bench.workloads import Query, Spec, find
from streamgauge.records.answers import Answer, Mode

#: an answer, and in streaming the micro-batches
Outcome = tuple[Answer, tuple[MicroBatch, ...]]
#: beginning of Spark's message; it names the run of the query that failed, and so differs every time
_FAILED = re.compile(r"^\[STREAM_FAILED\].*? terminated with exception: ")


class _Unjudged(Exception):
    """Raised where the engine has answered, and nobody knows the right answer."""


@contextmanager
def _judging() -> Iterator[None]:
    try:
        yield
    except Exception as problem:
        raise _Unjudged(str(problem)) from problem


def attempted(spark: SparkSession, query: Query, mode: Mode, run: Callable[[], Outcome]) -> Outcome:
    """The outcome of a run; of one that failed, the engine's own message. Raises Outage if the engine is gone."""
    try:
        return run()
    except _Unjudged as problem:
        return Answer(query=short(query), mode=mode, status="unchecked", why=reason(str(problem))), ()
    except Exception as problem:
        if not is_alive(spark):
            raise Outage(f"Spark ended in the middle of {short(query)} in {mode}: {reason(str(problem))}") from problem
        why = _FAILED.sub("", reason(str(problem) or type(problem).__name__))
        return Answer(query=short(query), mode=mode, status="unsupported", why=why), ()


def in_batch(spec: Spec, frames: list[DataFrame], plain: pa.Table) -> Outcome:
    """Asks in batch over frames that each hold all rows; plain: these rows."""
    began = time.monotonic()
    output = queries.run(frames, spec).toArrow()
    seconds = time.monotonic() - began
    with _judging():
        right = ask(spec, (plain,) * len(frames))
    return compared(spec, "batch", output, right, seconds, plain.num_rows), ()


def in_streaming(
    spark: SparkSession,
    spec: Spec,
    rows: pa.Table,
    batches: Sequence[pa.Table],
    work: Path,
    conf: Mapping[str, str] | None = None,
) -> Outcome:
    """Asks in streaming on these micro-batches, of which the last holds the sentinel.

    DuckDB's answer leaves out exactly the rows that the run's offsets and watermarks let it drop. rows: those of all
    batches, with partition and row.
    """
    run = stream(spark, spec, batches, work, conf)
    rules = queries.rules(spec, one_watermark=run.one_watermark)
    with _judging():
        due = expectation(rows, run.logs(), spec, rules)
        right = answer(due)
    seconds = sum(batch.seconds for batch in run.batches)
    peak = max(sum(operator.rows for operator in batch.operators) for batch in run.batches)
    late = Late(rules.late_counted, due.late, run.dropped, due.wrong_watermark)
    return compared(spec, "streaming", run.output, right, seconds, rows.num_rows, late, peak), run.batches


def stream(
    spark: SparkSession, spec: Spec, batches: Sequence[pa.Table], work: Path, conf: Mapping[str, str] | None = None
) -> FiniteRun:
    """Runs a query in streaming; each table is a micro-batch."""
    streams = find(spec.query).streams
    return run_finite(spark, lambda frames: queries.run(frames, spec), batches, work, streams=streams, conf=conf)


def compared(
    spec: Spec,
    mode: Mode,
    output: pa.Table,
    wanted: pa.Table,
    seconds: float,
    events: int,
    late: Late | None = None,
    state_rows: int | None = None,
) -> Answer:
    """Judges an output by the query's rule. late: none in batch, and where the query drops nothing."""
    query = find(spec.query)
    sizes = size_and_hash(output, query.rule), size_and_hash(wanted, query.rule)
    late = late or Late(queries.rules(spec).late_counted)
    return judged(query, mode, *sizes, seconds, events, late, output.nbytes, state_rows)
