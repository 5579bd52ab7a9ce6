"""Parses a block of text lines into events and bad lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import Ints, Mask, bools, int64s
from streamgauge.base.errors import UserError
from streamgauge.base.schemas import events_schema
from streamgauge.base.units import ticks_per_second
from streamgauge.descriptions.source import Source, TimeColumn
from streamgauge.descriptions.topic import is_beside
from streamgauge.streams.disorder.hints import LISTED, NONE_SKIPPED, Skipped
from streamgauge.streams.disorder.zones import skipped_hours
from streamgauge.streams.sources.topics import TOMBSTONE, Beside
from streamgauge.streams.text import json_lines
from streamgauge.streams.text.fields import (
    OUT_OF_RANGE,
    READABLE,
    UNREADABLE,
    AnyFields,
    Bytes,
    Fields,
    Joined,
    Lines,
    spread,
    texts,
    with_points,
)
from streamgauge.streams.text.numbers import integers, scaled
from streamgauge.streams.text.over_lines import UNBALANCED
from streamgauge.streams.text.patterns import pieces
from streamgauge.streams.text.ranges import LONGEST_LINE
from streamgauge.streams.text.times import factors, times


@dataclass(frozen=True)
class Layout:
    """Positions (0-based) of the needed fields in the lines of one file."""

    source: Source
    fields: int  # least number of fields in a complete line
    time: tuple[int, ...]
    arrival: tuple[int, ...]  # none without an arrival column
    columns: tuple[int, ...]  # of source.columns, in their order
    since_ns: int | None = None  # of times without a year: the year from here on is meant
    most: int | None = None  # number of fields of a line, where the file's header names them
    beside: tuple[str, ...] = ()  # columns beside the lines; the k-th of them has the position -1 - k

    @property
    def schema(self) -> pa.Schema:
        return events_schema(self.source.kinds, arrival=bool(self.arrival))

    @property
    def needed(self) -> tuple[int, ...]:
        return *self.time, *self.arrival, *self.columns

    def moved(self, places: Mapping[int, int]) -> Layout:
        """The layout of lines in which each needed field stands at another place."""
        time, arrival, columns = (
            tuple(places[at] for at in fields) for fields in (self.time, self.arrival, self.columns)
        )
        return replace(self, fields=len(places), time=time, arrival=arrival, columns=columns)


#: bad lines of a block; at: 0-based line in the block, or place in its span of offsets; text: all of it but the
#: newline, or the beginning of a long one
BAD = pa.schema([("at", pa.int64()), ("reason", pa.string()), ("text", pa.binary())])


#: a zone whose clocks are never changed, and how much it is behind UTC
_AWAY, _AWAY_S = "Etc/GMT+12", 12 * 3600

COMMENT = "comment"
#: how the reason of a line begins that has more fields than the header
MORE_THAN = "more than"
#: reasons of lines that are left out and are no faults
NO_FAULTS = (COMMENT, TOMBSTONE)
TOO_LONG = f"longer than {LONGEST_LINE >> 20} MiB"
#: bytes that the quarantine keeps of a line that is too long; file and line number tell where the rest is
_SHOWN = 1024


@dataclass(frozen=True)
class Parsed:
    """Result of parse() for one block."""

    events: pa.Table  # schema of the layout
    bad: pa.Table | None  # schema BAD, where there are any
    skipped: Skipped = NONE_SKIPPED


def layout_of(source: Source, names: list[str] | None, where: str) -> Layout:
    """Finds the source's columns among the names of a file's fields; names is None if it has none. Raises UserError."""
    beside = tuple(dict.fromkeys(str(place) for place in source.needed if source.kafka and is_beside(place)))

    def index(place: str | int, key: str) -> int:
        return -1 - beside.index(str(place)) if place in beside else _index(source, names, place, key, where)

    time, arrival = (
        tuple(index(part, f"{key}.column") for part in (column.parts if column else ()))
        for key, column in (("time", source.time), ("arrival", source.arrival))
    )
    columns = tuple(index(place, "columns") for place in source.places.values())
    for key, column in (("time", source.time), ("arrival", source.arrival)):
        if column is not None and column.format is not None:
            try:
                pieces(column.format)
            except UserError as problem:
                raise UserError(f"source.{key}.{problem}") from None
    needed = max(*time, *arrival, *columns, 0) + 1
    return Layout(source, max(len(names or ()), needed), time, arrival, columns, beside=beside)


def names_in(header: bytes, source: Source, where: str) -> list[str]:
    """The names in a header line with its end, without blanks around them. Raises UserError if it is not UTF-8."""
    try:
        header.decode()
    except UnicodeDecodeError as problem:
        raise UserError(f"{where}: line 1: not UTF-8 ({problem.reason}); convert the file to UTF-8") from None
    lines = Fields(header, source.separator, source.quote, 1, repeats=source.repeats)
    if lines.unbalanced[0]:
        raise UserError(
            f"{where}: line 1: a quoted name goes on to line 2, allowed: a header of one line; put a blank in place of "
            "the line end, or set source.quote: null if quotes mean nothing"
        )
    count = int(lines.field_counts[0])
    return [texts(lines.buffer, *lines.field(k))[0].as_py().decode().strip() for k in range(count)]


def _index(source: Source, names: list[str] | None, column: str | int, key: str, where: str) -> int:
    if names is None:
        if isinstance(column, int):
            return column
        raise UserError(
            f"{where}: source.{key}: found the name {column!r}, but the file has no header; "
            "give a 0-based index, or source.column_names"
        )
    index = column if isinstance(column, int) else names.index(column) if column in names else -1
    if 0 <= index < len(names) and (isinstance(column, int) or names.count(column) == 1):
        return index
    if index >= 0 and not isinstance(column, int):
        raise UserError(f"{where}: source.{key}: {names.count(column)} columns are named {column!r}; give an index")
    hint = ""
    if len(names) == 1 and source.format == "csv":
        hint = f"; the separator {source.separator!r} does not occur there: check source.separator"
    shown = ", ".join(repr(name[:60]) for name in names[:30])
    raise UserError(f"{where}: source.{key}: no column {column!r}; found {len(names)}: {shown}{hint}")


def parse(
    data: bytes,
    layout: Layout,
    first_seq: int,
    beside: Beside | None = None,
    known: Sequence[pa.Array] | None = None,
) -> Parsed:
    """Parses lines, each ended by a newline (see ranges.ended); line i of the block has seq first_seq + i.

    beside: what stands beside the lines, which then also tells their places. known: see `typed.known`.
    """
    return _Block(data, layout, beside).parsed(first_seq) if known is None else _typed(data, layout, first_seq, known)


def _typed(data: bytes, layout: Layout, first_seq: int, known: Sequence[pa.Array]) -> Parsed:
    """Lines whose fields are known are events, unless they are too long or no UTF-8: their fields are looked for."""
    lines = Lines(data)
    if (lines.lengths > LONGEST_LINE).any() or lines.not_utf8().any():
        return _Block(data, layout, None).parsed(first_seq)
    time, *others = known
    seqs = int64s(np.arange(first_seq, first_seq + lines.count))
    return Parsed(pa.Table.from_arrays([seqs, time, lines.column(), *others], schema=layout.schema), None)


def lines_of(data: bytes, layout: Layout, beside: Beside | None = None) -> tuple[Lines, AnyFields]:
    """(the lines of a block, their fields)."""
    source = layout.source
    if source.is_json:
        lines = Lines(data)
        own: AnyFields = json_lines.Values(lines, json_lines.paths(source), json_lines.numbers(source))
    else:
        lines = own = Fields(data, source.separator, source.quote, layout.fields, repeats=source.repeats)
    return lines, own if beside is None or not beside.columns else Joined(own, beside.columns)


def _strings(values: Sequence[str]) -> pa.Array:
    """The texts as an array; of a list, pyarrow would make one by way of pandas, which takes half a second to load."""
    data = [value.encode() for value in values]
    offsets = np.cumsum([0, *map(len, data)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(data), pa.py_buffer(offsets), pa.py_buffer(b"".join(data)))


class _Block:
    def __init__(self, data: bytes, layout: Layout, beside: Beside | None) -> None:
        self._layout = layout
        self._source = layout.source
        self._beside = beside
        self._lines, self._fields = lines_of(data, layout, beside)
        self._reasons = [""]
        #: index in _reasons of each line's first fault, 0 for none
        self._why: Bytes = np.zeros(self._lines.count, np.uint8)

    def parsed(self, first_seq: int) -> Parsed:
        lines, layout, beside = self._lines, self._layout, self._beside
        for reason, lines_of_it in beside.reasons.items() if beside is not None else ():
            self._blame(np.isin(np.arange(lines.count), lines_of_it), reason)
        places = np.arange(lines.count) if beside is None else beside.at
        long = lines.lengths > LONGEST_LINE
        if self._source.comment is not None:
            self._blame(lines.begin_with(self._source.comment.encode()), COMMENT)
        self._blame(long, TOO_LONG)
        self._blame(lines.not_utf8(), "not UTF-8")
        self._blame(self._fields.unbalanced, UNBALANCED)
        if lines.count and not lines.lengths.all():
            self._blame(lines.lengths == 0, "empty line")
        self._blame(self._fields.bad, "not a JSON object")
        self._blame(~self._fields.complete, f"fewer than {layout.fields} fields")
        if layout.most is not None and isinstance(self._fields, Fields):
            self._blame(self._fields.longer_than(layout.most), f"{MORE_THAN} {layout.most} fields")
        columns: list[pa.Array] = [int64s(places + first_seq), self._event_time()]
        columns.append(lines.column())
        if layout.arrival:
            columns.append(self._arrival())
        kinds = {"string": self._string, "int64": self._int64, "float64": self._float64}
        for (name, kind), index in zip(self._source.kinds.items(), layout.columns, strict=True):
            columns.append(kinds[kind](name, index))
        events = pa.Table.from_arrays(columns, schema=layout.schema)
        at = np.flatnonzero(self._why)
        skipped = self._skipped(places + first_seq, columns[1].to_numpy())
        if not len(at):
            return Parsed(events, None, skipped)
        reasons = _strings(self._reasons).take(int64s(self._why[at].astype(np.int64)))
        shown = np.where(long, _SHOWN, np.diff(lines.offsets) - 1)
        text = texts(lines.buffer, lines.offsets[:-1][at], shown[at])
        bad = pa.Table.from_arrays([int64s(places[at]), reasons, text], schema=BAD)
        return Parsed(events.filter(bools(self._why == 0)), bad, skipped)

    def _blame(self, lines: Mask, reason: str) -> None:
        if lines.any():
            self._why[lines & (self._why == 0)] = len(self._reasons)
            self._reasons.append(reason)

    def _field(self, index: int, *, trim: bool = True) -> tuple[Ints, Ints]:
        """Start and length of that field in every line; its length is 0 in lines that are already bad."""
        starts, lengths = self._fields.field(index, trim=trim)
        return starts, np.where(self._why == 0, lengths, 0) if self._why.any() else lengths

    def _times(self, column: TimeColumn, parts: tuple[int, ...]) -> tuple[Ints, Ints, Bytes]:
        """Lengths of the fields, ticks and codes."""
        buffer = self._fields.buffer
        if column.unit is not None and (numbers := self._fields.numbers(parts[0])) is not None:
            read = np.full(len(numbers), READABLE, np.uint8)
            return np.ones_like(numbers), *scaled(numbers, read, *factors(column.unit, self._source.tick))
        if len(parts) == 1 and self._source.decimal == "point":
            # blanks around times are seldom, and the look for them costs more than the rest
            starts, lengths = self._field(parts[0], trim=False)
            values, codes = times(column, self._source.tick, buffer, starts, lengths, self._layout.since_ns)
            if not codes.any() or np.array_equal(self._field(parts[0])[1], lengths):
                return lengths, values, codes
        starts, lengths = self._field(parts[0])
        if len(parts) > 1:
            fields = [texts(buffer, *self._field(part)) for part in parts]
            buffer, starts, lengths = spread(pc.binary_join_element_wise(*fields, b" "))
            lengths = np.where(lengths > len(parts) - 1, lengths, 0)
        elif column.unit is not None and self._source.decimal == "comma":
            buffer, starts, lengths = spread(with_points(texts(buffer, starts, lengths)))
        values, codes = times(column, self._source.tick, buffer, starts, lengths, self._layout.since_ns)
        return lengths, values, codes

    def _event_time(self) -> pa.Array:
        lengths, values, codes = self._times(self._source.time, self._layout.time)
        if codes.any():
            column = self._source.time
            wanted = f"a number of {column.unit}" if column.unit else column.format or "ISO-8601"
            for path in (part for part in map(str, column.parts) if part in self._fields.lacks):
                self._blame(self._fields.lacks[path], f"the path {path!r} is not there")
            self._blame(lengths == 0, "empty time")
            self._blame(codes == UNREADABLE, f"time is not {wanted}")
            self._blame(codes == OUT_OF_RANGE, f"time does not fit into 64-bit {self._source.tick}")
        return int64s(values)

    def _skipped(self, seqs: Ints, times: Ints) -> Skipped:
        """The events of an hour that the zone does not have; a midnight may be a date alone."""
        column, per_s, good = self._source.time, ticks_per_second(self._source.tick), self._why == 0
        if not (column.is_local and good.any()):
            return NONE_SKIPPED
        hours = skipped_hours(column.zone, int(times[good].min()) // per_s, int(times[good].max()) // per_s)
        if not hours:
            return NONE_SKIPPED
        # read as of another zone, the times without an offset tell what is written, and the others are the same
        _, elsewhere, _ = self._times(column.model_copy(update={"zone": _AWAY}), self._layout.time)
        local_s = elsewhere // per_s - _AWAY_S
        within = np.logical_or.reduce([(local_s >= first) & (local_s < end) for first, end in hours])
        skipped = np.flatnonzero(
            good & within & (elsewhere != times) & (elsewhere % (86400 * per_s) != _AWAY_S * per_s)
        )
        return Skipped(events=len(skipped), seqs=tuple(seqs[skipped[:LISTED]].tolist()))

    def _arrival(self) -> pa.Array:
        assert self._source.arrival is not None
        _, values, codes = self._times(self._source.arrival, self._layout.arrival)
        return int64s(values, codes == 0)

    def _int64(self, name: str, index: int) -> pa.Array:
        if (numbers := self._fields.numbers(index)) is not None:
            return int64s(numbers)
        starts, lengths = self._field(index)
        values, codes = integers(self._fields.buffer, starts, lengths)
        empty = lengths == 0
        self._blame((codes != 0) & ~empty, f"{name} is not an int64")
        return int64s(values, codes == 0)

    def _float64(self, name: str, index: int) -> pa.Array:
        column = self._string(name, index)
        if self._source.decimal == "comma":
            column = with_points(column.view(pa.binary())).view(pa.string())
        try:
            return column.cast(pa.float64())
        except pa.ArrowInvalid:
            encoded = column.dictionary_encode()
            values = pa.array([_float(text) for text in encoded.dictionary.to_pylist()], pa.float64())
            read = values.take(encoded.indices)
            bad = pc.and_(column.is_valid(), read.is_null())
            self._blame(bad.to_numpy(zero_copy_only=False), f"{name} is not a number")
            return read

    def _string(self, _: str, index: int) -> pa.Array:
        starts, lengths = self._field(index)
        column = texts(self._fields.buffer, starts, lengths).view(pa.string())
        quote = self._source.quote
        if self._fields.quoted and quote is not None and index >= 0:
            column = pc.replace_substring(column, quote * 2, quote)
        return pc.if_else(bools(lengths == 0), pa.nulls(len(column), pa.string()), column)  # pa.scalar imports pandas


def _float(text: str) -> float | None:
    try:
        return float(pa.scalar(text).cast(pa.float64()).as_py())
    except pa.ArrowInvalid:
        return None
