"""A fingerprint of result rows that depends on their values and not on their order: a sum of row hashes mod 2^64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
#: columns that measure and are no result
MEASURED = ("event_wall", "offered_wall", "sentinel")
_BASE = 0x100000001B3
_INVERSE = pow(_BASE, -1, 2**64)
_NULL = np.uint64(0x9E3779B97F4A7C15)
_powers: dict[int, U64] = {}


def result_columns(names: Sequence[str]) -> list[str]:
    """Sorted, so that engines may order columns as they like."""
    return sorted(name for name in names if name not in MEASURED)


def checksum(batch: pa.RecordBatch | pa.Table) -> int:
    """Of the result columns: integers, floats, booleans, timestamps, strings and binaries. Raises TypeError."""
    if isinstance(batch, pa.Table):
        return sum(checksum(part) for part in batch.to_batches()) % 2**64
    rows = np.zeros(batch.num_rows, np.uint64)
    for number, name in enumerate(result_columns(batch.schema.names)):
        rows += _mix(_hash(batch.column(name)) + np.uint64(_salt(number)))
    return int(_mix(rows).sum(dtype=np.uint64))


def _hash(column: pa.Array) -> U64:
    kind = column.type
    valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        found = _texts(column)
    elif pa.types.is_floating(kind):
        values = column.cast(pa.float64()).fill_null(0.0).to_numpy() + 0.0  # -0.0 is 0.0
        found = values.view(np.uint64).copy()
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_timestamp(kind):
        if pa.types.is_timestamp(kind):
            column = column.cast(pa.timestamp("us", kind.tz))
        elif kind != pa.int64():
            column = column.cast(pa.int64())
        found = column.view(pa.int64()).fill_null(0).to_numpy().view(np.uint64).copy()
    else:
        raise TypeError(f"found a result column of type {kind}, allowed: numbers, texts, timestamps")
    if valid is not None:
        found[~valid] = _NULL
    return found


def _texts(column: pa.Array) -> U64:
    """Polynomial hashes of all values in one pass: prefix sums of byte * base^position, then divided by base^start."""
    _, offsets, data = column.buffers()
    size = column.type.bit_width if column.type == pa.large_string() else 32
    ends = np.frombuffer(offsets, np.int64 if size == 64 else np.int32)[column.offset : column.offset + len(column) + 1]
    first, last = int(ends[0]), int(ends[-1])
    text = np.frombuffer(data, np.uint8, last)[first:] if data is not None else np.zeros(0, np.uint8)
    sums = np.zeros(last - first + 1, np.uint64)
    np.cumsum((text.astype(np.uint64) + np.uint64(1)) * _power(_BASE, len(text))[: len(text)], out=sums[1:])
    at = ends.astype(np.int64) - first
    return (sums[at[1:]] - sums[at[:-1]]) * _power(_INVERSE, len(text) + 1)[at[:-1]]


def _power(base: int, count: int) -> U64:
    """base^0, base^1 … mod 2^64, at least count of them; kept, as batches are alike."""
    known = _powers.get(base)
    if known is None or len(known) < count:
        known = np.full(2 ** max(16, count.bit_length()), base, np.uint64)
        known[0] = 1
        known = np.cumprod(known)
        _powers[base] = known
    return known


def _mix(x: U64) -> U64:
    """The finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _salt(number: int) -> int:
    return (number + 1) * 0x9E3779B97F4A7C15 % 2**64
