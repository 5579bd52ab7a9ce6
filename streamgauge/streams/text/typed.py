"""Reads columns of known types without their text, wherever the text would say the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import int64s, ints
from streamgauge.base.units import PS, Tick
from streamgauge.descriptions.source import TimeColumn
from streamgauge.streams.text.fields import INT64_MAX
from streamgauge.streams.text.parse import Layout
from streamgauge.streams.text.rows import all_bytes


def known(rows: pa.Table, layout: Layout) -> list[pa.Array] | None:
    """Returns the event time, the arrival time if the source has one, and its columns; None if only the text tells.

    rows: a column for each field of a line.
    """
    source = layout.source
    if source.comment is not None or source.decimal != "point":
        return None
    times = [(source.time, layout.time)]
    if source.arrival is not None:
        times.append((source.arrival, layout.arrival))
    arrays = [_ticks(column, _array(rows, parts[0]), source.tick) for column, parts in times if len(parts) == 1]
    arrays += [
        _values(kind, _array(rows, at), source.separator, source.quote or '"')
        for kind, at in zip(source.kinds.values(), layout.columns, strict=True)
    ]
    read = [array for array in arrays if array is not None]
    return read if len(read) == len(times) + len(layout.columns) else None


def _array(rows: pa.Table, place: int) -> pa.Array:
    column = rows.column(place)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _ticks(column: TimeColumn, array: pa.Array, tick: Tick) -> pa.Array | None:
    kind = array.type
    if array.null_count or not len(array):
        return None
    if column.unit is not None:
        unit_ps = PS[column.unit] if pa.types.is_integer(kind) else None
    elif not column.is_iso or (column.zone != "UTC" and not (pa.types.is_timestamp(kind) and kind.tz)):
        unit_ps = None
    elif pa.types.is_date32(kind):
        unit_ps, array = PS["d"], array.cast(pa.int32())
    else:
        unit_ps = PS[kind.unit] if pa.types.is_timestamp(kind) else None
    values = None if unit_ps is None else _int64(array)
    if unit_ps is None or values is None:
        return None
    factor, divisor = max(1, unit_ps // PS[tick]), max(1, PS[tick] // unit_ps)
    numbers = ints(values)
    most = INT64_MAX // factor
    if numbers.min() < -most or numbers.max() > most:
        return None
    return int64s(numbers * factor if divisor == 1 else numbers // np.int64(divisor))


def _int64(array: pa.Array) -> pa.Array | None:
    try:
        return array.cast(pa.int64())
    except pa.ArrowInvalid:  # a number of 64 bits without a sign
        return None


def _values(kind: str, array: pa.Array, separator: str, quote: str) -> pa.Array | None:
    own = array.type
    if kind == "int64":
        return _int64(array) if pa.types.is_integer(own) else None
    if kind == "float64":
        return array if pa.types.is_float64(own) else None
    if not (pa.types.is_string(own) or pa.types.is_large_string(own)):
        return None
    held = all_bytes(array)  # a look at all bytes at once is quick
    if any(byte in held for byte in (quote.encode(), b"\n", b"\r", separator.encode())):
        return None
    lengths = pc.binary_length(array)
    if b" " in held or b"\t" in held:  # blanks around a text are no part of a field
        trimmed = pc.ascii_trim(array, characters=" \t")
        if not pc.all(pc.equal(pc.binary_length(trimmed), lengths)).as_py():
            return None
    return pc.if_else(pc.equal(lengths, pa.array([0], lengths.type)[0]), pa.nulls(len(array), own), array).cast(
        pa.string()
    )
