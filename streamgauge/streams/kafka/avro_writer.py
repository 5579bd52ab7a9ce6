"""Writes rows in Avro's binary encoding, column by column: in a fifth of the time that fastavro takes for records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import Ints, Mask, ints
from streamgauge.base.errors import UserError
from streamgauge.streams.kafka.schemas import OWN

#: a matrix of bytes, one row of it for each row, filled from the left; and how many bytes of each row count
_Part = tuple[npt.NDArray[np.uint8], Ints]
#: bytes of a column's widest text times rows that are written at once
_MOST_BYTES = 1 << 22
_LARGEST_VARINT = 10


def writer(schema: pa.Schema) -> Callable[[pa.RecordBatch], list[bytes]]:
    """A function that turns rows into values, by `schemas.avro_schema`. Raises UserError."""
    names = ["event_time", "event_ts", *(name for name in schema.names if name not in OWN)]
    for name in names:
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
            raise UserError(f"format avro: found the column {name!r}, allowed: letters, digits and _")

    def values(rows: pa.RecordBatch) -> list[bytes]:
        if rows.num_rows > 1 and rows.num_rows * _widest(rows, names) > _MOST_BYTES:
            half = rows.num_rows // 2
            return values(rows.slice(0, half)) + values(rows.slice(half))
        stamps = ints(pc.cast(rows.column("event_ts").cast(pa.timestamp("us")), pa.int64()))
        parts = [_longs(ints(rows.column("event_time"))), _longs(stamps)]
        for name in names[2:]:
            parts += _optional(rows.column(name))
        filled = [np.arange(block.shape[1]) < lengths[:, None] for block, lengths in parts]
        data = np.hstack([block for block, _ in parts])[np.hstack(filled)].tobytes()
        ends = np.cumsum(sum(lengths for _, lengths in parts)).tolist()
        return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]

    return values


def _widest(rows: pa.RecordBatch, names: list[str]) -> int:
    widths = [pc.max(pc.binary_length(rows.column(name))).as_py() for name in names if _is_text(rows.column(name))]
    return max((width or 0 for width in widths), default=0)


def _is_text(column: pa.Array) -> bool:
    return bool(pa.types.is_string(column.type))


def _longs(values: Ints, given: Mask | None = None) -> _Part:
    """Whole numbers as varints of their zigzag; those that are not given have no bytes."""
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    groups = zigzag[:, None] >> np.arange(0, 7 * _LARGEST_VARINT, 7, dtype=np.uint64)
    lengths = np.maximum((groups > 0).sum(axis=1), 1)
    last = np.arange(_LARGEST_VARINT) == lengths[:, None] - 1
    block = ((groups & np.uint64(127)) | np.where(last, np.uint64(0), np.uint64(128))).astype(np.uint8)
    return block, lengths if given is None else np.where(given, lengths, 0)


def _optional(column: pa.Array) -> Iterator[_Part]:
    """Yields the branch of null and a value, and the value."""
    given = np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False), bool)
    yield np.where(given, 2, 0).astype(np.uint8)[:, None], np.ones(len(given), np.int64)
    if _is_text(column):
        lengths = ints(pc.fill_null(pc.binary_length(column), 0).cast(pa.int64()))
        yield _longs(lengths, given)
        yield _texts(column, lengths)
    elif pa.types.is_floating(column.type):
        values = pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False)
        yield np.ascontiguousarray(values, "<f8").view(np.uint8).reshape(-1, 8), np.where(given, 8, 0)
    else:
        yield _longs(ints(pc.fill_null(column, 0)), given)


def _texts(column: pa.Array, lengths: Ints) -> _Part:
    data = np.frombuffer(b"".join([*pc.fill_null(column, "").cast(pa.binary()).to_pylist(), b"\0"]), np.uint8)
    places = (np.cumsum(lengths) - lengths)[:, None] + np.arange(lengths.max(initial=0))
    return data[np.minimum(places, len(data) - 1)], lengths
