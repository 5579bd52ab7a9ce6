"""Measures the facts of a stream and its events that validation judges, without a global window.

Tasks read row groups in stream order. Footers give the running maximum before each group, so a task can start
anywhere. Content is compared by sums of hashes, positions by one join on seq.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from streamgauge.base.errors import UserError
from streamgauge.base.places import opened
from streamgauge.base.schemas import STREAM
from streamgauge.catalog.artifacts import Artifact
from streamgauge.descriptions.streams import Experiment
from streamgauge.records.manifests import StreamManifest
from streamgauge.records.validation import Facts
from streamgauge.streams.disorder import definitions, row_groups
from streamgauge.streams.disorder.duplicates import total
from streamgauge.streams.disorder.row_groups import RowGroup
from streamgauge.streams.stages import tasks

TASK_ROWS = 2_000_000
BIN_BITS = 7  # 65 to 129 bins of event time, fewer if it spans fewer ticks
#: flags of a row of the stream
LATE, UNSORTED_IN_FILE, UNSORTED_ACROSS = 1, 2, 4
#: what the sums of hashes cover; "columns" are the arrival time and the declared columns
COVERED: dict[str, tuple[str, ...]] = {
    "time_line": ("event_time", "line"),
    "seq_time_line": ("seq", "event_time", "line"),
    "columns": ("seq", "*"),
}
SALTS = (1, 2)
#: counts that a stream's manifest claims
CLAIMS = (
    "events", "source_out_of_order", "target_out_of_order", "achieved_out_of_order", "newly_delayed", "duplicates",
)  # fmt: skip
_WORD = 1 << 64

Rows = Callable[[list[RowGroup], RowGroup | None], Iterator[pa.RecordBatch]]


def facts(spark: SparkSession, events: Artifact, stream: Artifact, experiment: Experiment) -> Facts:
    """Returns each fact by its name: counts as integers, sums of hashes as text; none is ever None.

    Both artifacts must have their columns, with the right types and without nulls.
    """
    return beside_claims(measure(spark, events, stream), stream.read(StreamManifest), experiment)


@dataclass(frozen=True)
class Measured:
    """Counts, and sums of hashes as text, of the rows of a stream and its events, by name."""

    counts: dict[str, int]
    sums: dict[str, str]


def measure(spark: SparkSession, events: Artifact, stream: Artifact) -> Measured:
    """Measures the facts of the rows alone."""
    sources = row_groups.row_groups(events.files())
    placed, claimed = row_groups.row_groups(stream.files()), stream.read(StreamManifest)
    bin_shift = _bin_shift(sources)
    rows = read(spark, stream)
    if claimed.duplicates:  # one that differs stays
        rows = rows.dropDuplicates()
    contents = _contents({"events": read(spark, events), "stream": rows}, bin_shift)
    before, after = contents["events"], contents["stream"]
    bins = before.bins.keys() | after.bins.keys()
    counts = {
        "events_rows": before.rows,
        "stream_rows": after.rows,
        "duplicates": row_groups.total_rows(placed) - after.rows,
        "bins": len(bins),
        "bins_equal": sum(before.bins.get(b) == after.bins.get(b) for b in bins),
        **_places(spark, sources, placed, claimed),
    }
    sums = {f"{dataset}_{name}_sum": text for dataset, of in contents.items() for name, text in of.sums.items()}
    return Measured(counts, sums)


def beside_claims(measured: Measured, claimed: StreamManifest, experiment: Experiment) -> Facts:
    """Adds what the experiment asks for, and as `claimed_*` the counts of the stream's manifest."""
    counts, claims = measured.counts, claimed.model_dump()
    own, wanted = counts["source_out_of_order"], experiment.fraction
    target = expected = own if wanted is None else round(wanted * counts["events_rows"])
    if experiment.on_infeasible == "closest":
        expected = min(max(target, own), claimed.feasible_max)
    complete: Facts = {
        **counts,
        **measured.sums,
        "target_out_of_order": target,
        "expected_out_of_order": expected,
        "expected_duplicates": total(counts["events_rows"], experiment.duplicated),
        **{f"claimed_{name}": claims[name] for name in CLAIMS},
    }
    # an expectation passes a missing value unnoticed
    if missing := [name for name, value in complete.items() if value is None]:
        raise ValueError(f"facts without a value: {', '.join(missing)}")
    return complete


def read(spark: SparkSession, artifact: Artifact) -> DataFrame:
    """Reads all rows of an artifact. Raises UserError when a file that the manifest names is gone."""
    files = artifact.files()
    if gone := [file for file in files if not file.exists()]:
        raise UserError(f"{gone[0]}: missing; remove {artifact.path} and run again to build it anew")
    return tasks.read(spark, files, pq.read_schema(opened(files[0])))


@dataclass(frozen=True)
class _Content:
    rows: int
    bins: dict[int, int]  # rows by event time >> shift
    sums: dict[str, str]  # by name of COVERED: two 64-bit sums as hexadecimal digits


def _contents(frames: dict[str, DataFrame], bin_shift: int) -> dict[str, _Content]:
    """Measures the order-independent content of each frame, all in one pass."""
    hashes = [f"{name}_{salt}" for name in COVERED for salt in SALTS]
    # a 64-bit sum of hashes overflows, which Spark refuses: its halves are summed instead
    halves = [
        F.sum(half).alias(f"{name}_{part}")
        for name in hashes
        for part, half in (("high", F.shiftright(name, 32)), ("low", F.col(name).bitwiseAND(F.lit(0xFFFFFFFF))))
    ]
    hashed = [
        frame.select(
            F.lit(dataset).alias("dataset"), F.shiftright("event_time", bin_shift).alias("bin"), *_hashes(frame)
        )
        for dataset, frame in frames.items()
    ]
    grouped = reduce(DataFrame.union, hashed).groupBy("dataset", "bin").agg(F.count("*").alias("rows"), *halves)
    rows = grouped.collect()

    def content(mine: list[Row]) -> _Content:
        def total(name: str) -> int:
            return sum((int(row[f"{name}_high"]) << 32) + int(row[f"{name}_low"]) for row in mine) % _WORD

        return _Content(
            rows=sum(row["rows"] for row in mine),
            bins={row["bin"]: row["rows"] for row in mine},
            sums={name: "".join(f"{total(f'{name}_{salt}'):016x}" for salt in SALTS) for name in COVERED},
        )

    return {dataset: content([row for row in rows if row["dataset"] == dataset]) for dataset in frames}


def _hashes(frame: DataFrame) -> list[Column]:
    """Hash columns, one for each entry of COVERED and each salt; "*" stands for the columns beyond the fixed ones."""
    extra = [name for name in frame.columns if name not in STREAM.names]
    return [
        _hash(salt, [c for column in covered for c in (extra if column == "*" else [column])]).alias(f"{name}_{salt}")
        for name, covered in COVERED.items()
        for salt in SALTS
    ]


def _hash(salt: int, columns: list[str]) -> Column:
    """Hash of some columns, and of which of them are null, as xxhash64 skips nulls."""
    parts = [part for name in columns for part in (F.col(name), F.col(name).isNull())]
    return F.xxhash64(F.lit(salt), *parts)


def _bin_shift(groups: list[RowGroup]) -> int:
    """Binary logarithm of the bins' width in ticks. A shift never overflows, whatever a time may be."""
    span = max((g.time_max for g in groups), default=0) - min((g.time_min for g in groups), default=0)
    return max(0, span.bit_length() - BIN_BITS)


def _places(
    spark: SparkSession, sources: list[RowGroup], placed: list[RowGroup], claimed: StreamManifest
) -> dict[str, int]:
    """Counts events by how their place in the stream compares with their base time and the delays' bounds."""
    events = _rows(spark, sources, _event_rows, "seq long, base_time long, source_late boolean, unsorted boolean")
    rows = partial(_stream_rows, with_duplicates=not claimed.duplicates)
    stream = _rows(spark, placed, rows, "seq long, ingestion_time long, flags int")
    base, ingestion, source_late = F.col("base_time"), F.col("ingestion_time"), F.col("source_late")
    new = ~source_late & (ingestion > base)

    def flag(bit: int) -> Column:
        return F.col("flags").bitwiseAND(F.lit(bit)) != 0

    counted = {
        "seq_missing": ingestion.isNull(),
        "seq_unknown": base.isNull(),
        "out_of_order": flag(LATE),
        "newly_delayed": new,
        "unsorted_within_files": flag(UNSORTED_IN_FILE),
        "unsorted_across_files": flag(UNSORTED_ACROSS),
        "ingested_before_base": ingestion < base,
        "delay_above_maximum": new & (ingestion > base + F.lit(claimed.delay_max)),
        "delay_below_minimum": new & (ingestion < base + F.lit(claimed.delay_min)),
        "source_disorder_moved": source_late & (ingestion != base),
        "source_disorder_healed": source_late & ~flag(LATE),
        "matched": ingestion.isNotNull() & base.isNotNull(),
    }
    # not counted in the join, which repeats an event for each of its duplicates
    own = _count(events, {"source_out_of_order": source_late, "events_unsorted": F.col("unsorted")})
    joined = _count(events.join(stream, "seq", "full_outer"), counted)
    counts = joined.crossJoin(own).collect()[0].asDict()
    matched = counts.pop("matched")
    there = row_groups.total_rows(sources) - counts["seq_missing"]
    return {**counts, "seq_duplicated": matched - there}


def _count(frame: DataFrame, conditions: dict[str, Column]) -> DataFrame:
    """Returns one row: how often each condition holds."""
    return frame.agg(*[F.count_if(condition).alias(name) for name, condition in conditions.items()])


def _rows(spark: SparkSession, groups: list[RowGroup], rows: Rows, schema: str) -> DataFrame:
    """Runs `rows` over all groups, in a few large tasks; each is also given the last group before its own."""
    count = max(spark.sparkContext.defaultParallelism, row_groups.total_rows(groups) // TASK_ROWS)
    shares = row_groups.shares(groups, count)
    work = [(share, shares[k - 1][-1] if k else None) for k, share in enumerate(shares)]

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from rows(*work[number])

    return spark.range(0, len(work), 1, max(1, len(work))).mapInArrow(task, schema)


def _event_rows(share: list[RowGroup], previous: RowGroup | None) -> Iterator[pa.RecordBatch]:
    last = _last(previous, ["seq"])
    for group in share:
        table = row_groups.read([group], ["seq", "event_time"])
        seq, times = (row_groups.column_array(table, name) for name in ("seq", "event_time"))
        base = definitions.running_maximum(times, group.before)
        unsorted = np.diff(seq, prepend=last[0] if last else seq[0] - 1) <= 0
        last = (int(seq[-1]),)
        yield _batch(seq=seq, base_time=base, source_late=base > times, unsorted=unsorted)


def _stream_rows(
    share: list[RowGroup], previous: RowGroup | None, *, with_duplicates: bool
) -> Iterator[pa.RecordBatch]:
    """Yields the rows; without duplicates, one whose place is that of the row before it is left out."""
    file = Path(previous.file) if previous else None
    last = _last(previous, ["ingestion_time", "seq"])
    for group in share:
        table = row_groups.read([group], ["ingestion_time", "seq", "event_time"])
        ingestion, seq, times = (row_groups.column_array(table, n) for n in ("ingestion_time", "seq", "event_time"))
        flags = np.where(definitions.out_of_order(times, group.before), LATE, 0).astype(np.int32)
        unsorted = (ingestion[1:] < ingestion[:-1]) | ((ingestion[1:] == ingestion[:-1]) & (seq[1:] < seq[:-1]))
        flags[1:] |= np.where(unsorted, UNSORTED_IN_FILE, 0).astype(np.int32)
        if last and (int(ingestion[0]), int(seq[0])) < last:
            flags[0] |= UNSORTED_IN_FILE if Path(group.file) == file else UNSORTED_ACROSS
        first = np.ones(len(seq), bool)
        if not with_duplicates:
            first[1:] = (ingestion[1:] != ingestion[:-1]) | (seq[1:] != seq[:-1])
            first[0] = last != (int(ingestion[0]), int(seq[0]))
        file, last = Path(group.file), (int(ingestion[-1]), int(seq[-1]))
        yield _batch(seq=seq[first], ingestion_time=ingestion[first], flags=flags[first])


def _last(group: RowGroup | None, columns: list[str]) -> tuple[int, ...] | None:
    """Values of these columns in a group's last row; None without a group."""
    if group is None:
        return None
    table = row_groups.read([group], columns)
    return tuple(table.column(name)[-1].as_py() for name in columns)


def _batch(**columns: npt.NDArray[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})
