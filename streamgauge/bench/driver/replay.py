"""Holds a stream artifact in memory, and replays it endlessly as record batches with wall-clock columns.

The replay loops: loop k has event and ingestion times shifted by k·(span + mean gap), seq continues, and ids are others
(driver/ids.py). Event i of the (densified) stream goes to partition i mod P, or to that of its key as Kafka's Java
client deals keys. So each partition keeps stream order, and is a table that is prepared once.

`densify: k` puts k copies of each event side by side under salted keys: text keys get the suffix "#copy", whole-number
keys become key·k + copy, seq becomes seq·k + copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import bools, int64s, ints, replaced
from streamgauge.base.errors import UserError
from streamgauge.base.parquet import parquet_file, reading_parquet
from streamgauge.base.schemas import COLUMN_TYPES
from streamgauge.base.units import PS, Tick
from streamgauge.bench.driver.floats import plain_floats
from streamgauge.bench.driver.ids import Ids, Turn
from streamgauge.bench.driver.marking import UNMARKED, Marking
from streamgauge.bench.driver.passing import Passing
from streamgauge.bench.driver.schedule import Ints, Loop, Schedule
from streamgauge.streams.kafka.partitioner import partitions_of

MAX_BYTES = 2_000_000_000  # of one in-memory stream: Arrow's text offsets are 32 bits
DAY_PS = PS["d"]
LARGEST = 2**63 - 1
EVENT_TS = pa.timestamp("us", tz="UTC")


def wire_schema(columns: dict[str, str], *, line: bool) -> pa.Schema:
    """Arrow schema of docs/protocol.md; columns: declared columns with their types."""
    fields = [
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("event_time", pa.int64(), nullable=False),
        pa.field("event_ts", EVENT_TS, nullable=False),
        pa.field("ingestion_time", pa.int64(), nullable=False),
        pa.field("offered_wall", pa.int64(), nullable=False),
        pa.field("event_wall", pa.int64(), nullable=False),
        pa.field("sentinel", pa.bool_(), nullable=False),
        *([pa.field("line", pa.binary(), nullable=False)] if line else []),
        *[pa.field(name, COLUMN_TYPES[kind]) for name, kind in columns.items()],
    ]
    return pa.schema(fields)


@dataclass(frozen=True)
class Stream:
    """Holds the rows in order of (ingestion_time, seq).

    Columns: ingestion_time, seq, event_time, line if wanted, and the declared ones.
    """

    table: pa.Table  # one chunk per column
    tick: Tick
    columns: dict[str, str]
    rows_in_artifact: int
    partition_by: str | None = None  # column of the keys

    @property
    def line(self) -> bool:
        return bool("line" in self.table.column_names)

    @property
    def truncated(self) -> bool:
        return len(self.table) < self.rows_in_artifact

    @property
    def schema(self) -> pa.Schema:
        return wire_schema(self.columns, line=self.line)

    def numbers(self, name: str) -> Ints:
        return ints(self.table.column(name).chunk(0))


def make_stream(table: pa.Table, tick: Tick, columns: dict[str, str], rows_in_artifact: int | None = None) -> Stream:
    """Makes the stream of a table. Raises UserError when the table is empty."""
    if table.num_rows == 0:
        raise UserError("stream: it holds no events; nothing can be replayed")
    return Stream(table.combine_chunks(), tick, columns, rows_in_artifact or table.num_rows)


def memory_of_each(max_memory_mb: int, streams: int) -> int:
    """MiB of one of several streams that a driver process holds. It decides which prefix of a large one is replayed."""
    return max(1, max_memory_mb // streams)


def load_stream(
    files: Sequence[Path],
    tick: Tick,
    columns: dict[str, str],
    *,
    line: bool = False,
    max_memory_mb: int = 1024,
    densify: int = 1,
    salted: Sequence[str] = (),
    partition_by: str | None = None,
) -> Stream:
    """Reads the parts in order. Keeps the prefix that fits half of max_memory_mb (the queues take the other half).

    Raises UserError for missing or foreign files, unknown columns, or not even one batch that fits.
    """
    wanted = ["ingestion_time", "seq", "event_time", *(["line"] if line else []), *columns]
    budget = min(max_memory_mb * 2**20 // 2, MAX_BYTES) // densify
    kept: list[pa.RecordBatch] = []
    total = used = 0
    for file in files:
        parquet = parquet_file(file)
        missing = [name for name in wanted if name not in parquet.schema_arrow.names]
        if missing:
            raise UserError(f"{file}: no column {missing[0]!r}; allowed: {', '.join(parquet.schema_arrow.names)}")
        total += parquet.metadata.num_rows
        if used > budget:
            continue
        with reading_parquet(file):
            for batch in parquet.iter_batches(batch_size=65536, columns=wanted):
                batch = batch.select(wanted)
                used += batch.nbytes
                if used > budget:
                    break
                kept.append(batch)
    if total and not kept:
        raise UserError(f"replay.max_memory_mb: found {max_memory_mb}, too small for one batch of the stream; raise it")
    table = pa.Table.from_batches(kept) if kept else pa.table({name: [] for name in wanted})
    whole = replace(make_stream(plain_floats(table), tick, columns, total), partition_by=partition_by)
    return densified(whole, densify, salted)


def densified(stream: Stream, copies: int, salted: Sequence[str]) -> Stream:
    """Returns a stream with `copies` copies of each event side by side, keys salted.

    Raises UserError for a salted column that is neither string nor int64.
    """
    if copies == 1:
        return stream
    count = stream.table.num_rows
    table = stream.table.take(pa.array(np.repeat(np.arange(count), copies))).combine_chunks()
    copy = np.tile(np.arange(copies), count)
    changed = {"seq": pc.add(pc.multiply(table.column("seq"), copies), pa.array(copy))}
    for name in salted:
        old, kind = table.column(name), stream.columns.get(name)
        if kind == "string":
            suffix = pc.binary_join_element_wise("#", pc.cast(pa.array(copy), pa.string()), "")
            changed[name] = pc.binary_join_element_wise(old, suffix, "")
        elif kind == "int64":
            changed[name] = pc.add(pc.multiply(old, copies), pa.array(copy))
        else:
            raise UserError(f"replay.densify: key column {name!r} is {kind}, allowed: declared string or int64 columns")
    made = replaced(table, changed).combine_chunks()
    return replace(stream, table=made, rows_in_artifact=stream.rows_in_artifact * copies)


class Replay:
    """An endless replay of a stream: everything that its feeds share."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.count = stream.table.num_rows
        self.event_time = stream.numbers("event_time")
        self.loop = Loop.of(stream.numbers("ingestion_time"))
        self.sequence_shift = int(stream.numbers("seq").max()) + 1
        self.latest = max(int(self.event_time.max()), int(self.loop.ingestion[-1]))
        self.passing = Passing(self.event_time, self.loop.shift)
        #: true or false for each event, in the order of the stream
        self.out_of_order = self.event_time < np.maximum.accumulate(self.event_time)
        self._dealt: dict[int, Ints] = {}  # by the number of partitions
        self._parts: dict[tuple[int, int], pa.Table] = {}
        self._ids: dict[tuple[str, ...], Ids] = {}

    def split(self, wanted: Sequence[int], partitions: int) -> None:
        """Prepares the wanted partitions. Raises UserError when there are more partitions than events."""
        if self.count < partitions:
            raise UserError(f"replay.partitions: found {partitions}, allowed: at most the stream's {self.count} events")
        for partition in wanted:
            self.part(partition, partitions)

    def rows(self, partition: int, partitions: int) -> Ints:
        """Numbers of the events of a partition: every P-th one, or those of its keys."""
        key = self.stream.partition_by
        if key is None or partitions == 1:
            return np.arange(partition, self.count, partitions)
        if partitions not in self._dealt:
            self._dealt[partitions] = partitions_of(self.stream.table.column(key), partitions)
        return np.flatnonzero(self._dealt[partitions] == partition)

    def part(self, partition: int, partitions: int) -> pa.Table:
        """Rows of a partition; made once."""
        if partitions == 1:
            return self.stream.table
        if (partition, partitions) not in self._parts:
            rows = int64s(self.rows(partition, partitions))
            self._parts[partition, partitions] = self.stream.table.take(rows).combine_chunks()
        return self._parts[partition, partitions]

    def share(self, wanted: Sequence[int], partitions: int) -> float:
        if self.stream.partition_by is None:
            return len(wanted) / partitions
        rows = sum(len(self.rows(partition, partitions)) for partition in wanted)
        return float(rows / self.count)

    def ids(self, columns: Sequence[str]) -> Ids:
        """The ids of the stream, looked at once. Raises UserError for a column that cannot be one."""
        if (named := tuple(columns)) not in self._ids:
            self._ids[named] = Ids.of(self.stream.table, named)
        return self._ids[named]

    def speed(self, rate: float) -> float:
        """Stream seconds that pass in a wall second at a mean rate of `rate` events/s."""
        return float(self.loop.shift / self.count * rate * PS[self.stream.tick] / PS["s"])

    def sentinel(self, latest: int, wall_ns: int, horizon_ps: int = DAY_PS) -> pa.RecordBatch:
        """Makes one row, horizon_ps beyond the latest time that was offered, in ticks."""
        at = min(latest + horizon_ps // PS[self.stream.tick], LARGEST)
        whole = {"seq": -1, "event_time": at, "ingestion_time": at, "offered_wall": wall_ns, "event_wall": wall_ns}
        row = {name: int64s(np.array([value])) for name, value in whole.items()} | {
            "event_ts": int64s(np.array([at // (PS["us"] // PS[self.stream.tick])])).view(EVENT_TS),
            "sentinel": bools(np.array([True])),
            "line": pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(bytes(8)), pa.py_buffer(b"")]),
        }
        arrays = [row[field.name] if field.name in row else pa.nulls(1, field.type) for field in self.stream.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.stream.schema)


@dataclass(frozen=True)
class Before:
    """Numbers that a feed adds to its own, so that they lie beyond those of the feeds of other streams before it."""

    shift: int = 0  # of event and ingestion time, ticks
    seq: int = 0
    loops: int = 0

    @classmethod
    def of(cls, partitions: Sequence[Before]) -> Before:
        """Returns the largest numbers of all partitions."""
        return cls(
            max(one.shift for one in partitions),
            max(one.seq for one in partitions),
            max(one.loops for one in partitions),
        )


class Feed:
    """A partition's rows in order: next_batch gives the next ones with their wall-clock columns."""

    def __init__(
        self, replay: Replay, schedule: Schedule, start_wall_ns: int, partition: int, partitions: int,
        marking: Marking = UNMARKED, before: Before | None = None,
    ) -> None:  # fmt: skip
        self._replay, self._due, self._start = replay, schedule.due, start_wall_ns
        self._ids, self._round, self._before = replay.ids(marking.columns), marking.round, before or Before()
        self._at = replay.rows(partition, partitions)
        #: events of the partition in a loop; there may be none
        self.rows = len(self._at)
        table = replay.part(partition, partitions)
        self._fixed = {
            name: table.column(name).chunk(0)
            for name in table.column_names
            if name not in ("ingestion_time", "seq", "event_time")
        }
        self._moving = {name: ints(table.column(name).chunk(0)) for name in ("ingestion_time", "seq", "event_time")}
        self.position = 0
        self.last_wall = start_wall_ns if self.rows else LARGEST  # of the last row given

    def out_of_order(self, rows: int) -> int:
        """Events out of order among the first `rows` rows of the partition in the first loop."""
        return int(self._replay.out_of_order[self._at[:rows]].sum())

    def loops(self, rows: int) -> int:
        """Number of loops that the first `rows` rows span, at least 1."""
        return max(0, rows - 1) // max(1, self.rows) + 1

    def latest(self) -> int:
        """The latest time in ticks of all loops that were begun."""
        return self._before.shift + self._replay.latest + (self.loops(self.position) - 1) * self._replay.loop.shift

    def before(self, replay: Replay, first: int) -> Before:
        """Returns what a feed of that stream adds after this one; no time of it is below `first`, in ticks."""
        loops, earliest = self.loops(self.position), min(int(replay.event_time.min()), int(replay.loop.ingestion[0]))
        seq = self._before.seq + loops * self._replay.sequence_shift
        return Before(first - earliest, seq, self._before.loops + loops)

    def next_batch(self, rows: int) -> tuple[pa.RecordBatch, Ints]:
        """Returns at most `rows` rows (a batch ends with its loop), and their offered_wall.

        Raises UserError when a time passes 64 bits.
        """
        replay, schema = self._replay, self._replay.stream.schema
        loop, first = divmod(self.position, self.rows)
        last = min(first + rows, self.rows)
        count = last - first
        self.position += count
        at = self._at[first:last]
        loops = np.full(count, loop)
        offered = self._start + self._due(loop * replay.count + at)
        self.last_wall = int(offered[-1])
        shift = self._before.shift + loop * replay.loop.shift
        if shift + replay.latest > LARGEST:
            raise UserError(f"loop {loop} of the stream: its times do not fit into 64 bits; shorten the trial")
        event_time = self._moving["event_time"][first:last] + shift
        microseconds = event_time // (PS["us"] // PS[replay.stream.tick])
        made = {
            "seq": int64s(self._moving["seq"][first:last] + (self._before.seq + loop * replay.sequence_shift)),
            "event_time": int64s(event_time),
            "event_ts": int64s(microseconds).view(EVENT_TS),
            "ingestion_time": int64s(self._moving["ingestion_time"][first:last] + shift),
            "offered_wall": int64s(offered),
            "event_wall": int64s(self._start + self._due(replay.passing.first(loops, at))),
            "sentinel": bools(np.zeros(count, bool)),
        }
        arrays = [made[f.name] if f.name in made else self._fixed[f.name].slice(first, count) for f in schema]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        return self._ids.marked(batch, Turn(self._round, self._before.loops + loop)), offered


def offered_rows(stream: Stream, counts: Sequence[Sequence[int]], marking: Marking = UNMARKED) -> pa.Table:
    """Returns all rows that a trial has offered: the first counts[i][q] of queue q of process i.

    Columns: those of the wire, with wall clocks of 0; int64 partition (numbered through all processes) and row (its
    offset).
    """
    replay, still = Replay(stream), Schedule(lambda index: np.zeros(len(index), np.int64))
    partitions, parts, number = sum(len(own) for own in counts), [], 0
    for process, own in enumerate(counts):
        for queue, count in enumerate(own):
            feed = Feed(replay, still, 0, process + queue * len(counts), partitions, marking)
            while feed.position < count:
                first = feed.position
                batch, _ = feed.next_batch(count - first)
                place = np.full(batch.num_rows, number), np.arange(first, first + batch.num_rows)
                parts.append(
                    batch.append_column("partition", pa.array(place[0])).append_column("row", pa.array(place[1]))
                )
            number += 1
    extra = [pa.field("partition", pa.int64()), pa.field("row", pa.int64())]
    return pa.Table.from_batches(parts, pa.schema([*stream.schema, *extra]))
