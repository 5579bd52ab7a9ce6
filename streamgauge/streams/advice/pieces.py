"""Events of a stream as an advice reads them: blocks of equally many, a row group at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import Mask
from streamgauge.records.advice import Question
from streamgauge.records.profile import Span
from streamgauge.streams.advice.slack import Judged, judged
from streamgauge.streams.advice.windows import UNKNOWN, Values
from streamgauge.streams.disorder.definitions import Times
from streamgauge.streams.disorder.row_groups import RowGroup, column_array, parts_of, read, row_groups


@dataclass(frozen=True)
class Piece:
    """Consecutive events of a block. number: that of the first one in the stream."""

    number: int
    events: Judged
    keys: Times | None
    values: Values | None
    arrival: Times | None


@dataclass
class Keys:
    """Numbers of keys, in the order in which they were seen."""

    numbers: dict[str | None, int] = field(default_factory=dict)

    def of(self, column: pa.ChunkedArray) -> Times:
        names, codes = parts_of(column)
        return np.array([self.numbers.setdefault(name, len(self.numbers)) for name in names], np.int64)[codes]


@dataclass(frozen=True)
class Stream:
    """Row groups of a stream, and what is asked about it."""

    groups: Sequence[RowGroup]
    begins: Sequence[int]  # number of the first event of each row group, and of all events
    question: Question
    with_arrival: bool

    @classmethod
    def of(cls, files: Sequence[Path | str], question: Question, *, with_arrival: bool = False) -> Stream:
        """Returns the stream of Parquet files with event times in stream order."""
        groups = row_groups(files)
        return cls(groups, [0, *accumulate(group.rows for group in groups)], question, with_arrival)

    @property
    def events(self) -> int:
        return self.begins[-1]

    @property
    def span(self) -> Span:
        """Smallest and largest event time."""
        return Span(min=min(one.time_min for one in self.groups), max=max(one.time_max for one in self.groups))

    def pieces(self, start: int, stop: int, keys: Keys) -> Iterator[Piece]:
        """Yields the events from number `start` to `stop`, a row group at a time."""
        key, value = self.question.key, self.question.value
        names = dict.fromkeys(["event_time", *filter(None, (key, value)), *["arrival_time"] * self.with_arrival])
        first = int(np.searchsorted(self.begins, start, side="right")) - 1
        for place in range(first, len(self.groups)):
            begin, group = self.begins[place], self.groups[place]
            if begin >= stop:
                return
            table, before = read([group], [*names]), group.before
            low, high = max(0, start - begin), min(group.rows, stop - begin)
            if low:
                before = max(before, int(column_array(table, "event_time")[:low].max()))
            table = table.slice(low, high - low)
            yield Piece(
                begin + low,
                judged(column_array(table, "event_time"), before, self.question),
                None if key is None else keys.of(table.column(key)),
                None if value is None else _floats(table.column(value)),
                arrival_times(table) if self.with_arrival else None,
            )

    def whole(self) -> tuple[Times, Times, Values | None, Mask]:
        """Times, numbers of keys, values, and which events are the left half of a join; of the whole stream."""
        question = self.question
        column, _, half = (question.left or "").partition("=")
        named = dict.fromkeys(filter(None, ("event_time", question.key, question.value, column)))
        table = read(self.groups, [*named])
        times = column_array(table, "event_time")
        keys = np.zeros(len(times), np.int64) if question.key is None else Keys().of(table.column(question.key))
        values = None if question.value is None else _floats(table.column(question.value))
        left = np.zeros(len(times), bool)
        if column:
            left = pc.fill_null(pc.equal(table.column(column).cast(pa.string()), half), False).to_numpy()
        return times, keys, values, left


def _floats(column: pa.ChunkedArray) -> Values:
    values: Values = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy()
    return values


def arrival_times(table: pa.Table) -> Times:
    """Arrival times; UNKNOWN where an event has none."""
    arrivals: Times = pc.fill_null(table.column("arrival_time"), UNKNOWN).to_numpy()
    return arrivals


@dataclass(frozen=True)
class Block:
    """A block of the stream: the events from number `start` to `stop`."""

    start: int
    stop: int

    @property
    def events(self) -> int:
        return self.stop - self.start


def cut(items: int, blocks: int) -> list[Block]:
    """Cuts so many items into consecutive blocks of about equally many."""
    edges = [items * number // blocks for number in range(blocks + 1)]
    return [Block(*two) for two in pairwise(edges)]


def tasks(blocks: Sequence[Block], cores: int) -> list[list[Block]]:
    """Deals blocks to tasks, in consecutive runs."""
    return [list(blocks[one.start : one.stop]) for one in cut(len(blocks), min(len(blocks), 4 * cores))]


def numbered(tasks: Sequence[list[Block]]) -> list[tuple[list[Block], int]]:
    """The tasks, each with the number of its first block."""
    return list(zip(tasks, accumulate((len(task) for task in tasks), initial=0), strict=False))
