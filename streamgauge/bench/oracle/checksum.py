"""A fingerprint of result rows that depends on their values and not on their order: a sum of row hashes mod 2^64.

Each value is hashed with the name of its column, so columns may come in any order, but two of them cannot be swapped.
A null differs from every value; all NaNs are equal; -0.0 equals 0.0; an integer's width does not matter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
#: columns of the measurement, which are not part of the result
MEASURED = ("event_wall", "offered_wall", "sentinel")
_BASE = 0x100000001B3
_INVERSE = pow(_BASE, -1, 2**64)
_NULL = np.uint64(0x9E3779B97F4A7C15)
_DAY_US = 86_400_000_000
_powers: dict[int, U64] = {}


def result_columns(names: Sequence[str]) -> list[str]:
    """Names of the columns that are compared, sorted, as engines may order columns differently."""
    return sorted(name for name in names if name not in MEASURED)


def checksum(batch: pa.RecordBatch | pa.Table) -> int:
    """Checksum of the result columns, 0 to 2^64 − 1: that of a table is the sum over its batches.

    Columns may be numbers, booleans, timestamps, dates, texts and binaries. Raises TypeError for others.
    """
    if isinstance(batch, pa.Table):
        return sum(checksum(part) for part in batch.to_batches()) % 2**64
    rows = np.zeros(batch.num_rows, np.uint64)
    for name in result_columns(batch.schema.names):
        rows += _mix(_hash(batch.column(name)) + salt(name))
    return int(_mix(rows).sum(dtype=np.uint64))


def _hash(column: pa.Array) -> U64:
    kind, valid = column.type, None
    if column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        bits = _texts(column, np.int32)
    elif pa.types.is_float32(kind) or pa.types.is_float64(kind):
        values = column.cast(pa.float64()).fill_null(0.0).to_numpy() + 0.0  # a copy, in which -0.0 is 0.0
        values[np.isnan(values)] = np.nan
        bits = values.view(np.uint64)
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_timestamp(kind):
        if pa.types.is_timestamp(kind):
            column = column.cast(pa.timestamp("us", kind.tz))
        elif kind not in (pa.int64(), pa.uint64()):
            column = column.cast(pa.int64())
        bits = column.view(pa.int64()).fill_null(0).to_numpy().view(np.uint64)
    elif pa.types.is_date32(kind):  # as the timestamp of its midnight
        bits = column.view(pa.int32()).cast(pa.int64()).fill_null(0).to_numpy().view(np.uint64) * np.uint64(_DAY_US)
    elif pa.types.is_decimal128(kind):
        bits = _decimals(column)
    elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        bits = _texts(column, np.int64)
    elif pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        wide = pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary()
        bits = _texts(column.cast(wide), np.int64)
    else:
        raise TypeError(f"found a result column of type {kind}, allowed: numbers, texts, timestamps, dates")
    return bits if valid is None else np.where(valid, bits, _NULL)


def _texts(column: pa.Array, offset: type[np.int32] | type[np.int64]) -> U64:
    """Polynomial hashes of all values in one pass: sums of (byte + 1) * base^position, divided by base^start."""
    _, offsets, data = column.buffers()
    if not len(column):  # Arrow may leave out the offsets of an empty array
        return np.zeros(0, np.uint64)
    ends = np.frombuffer(offsets, offset)[column.offset : column.offset + len(column) + 1]
    first, last = int(ends[0]), int(ends[-1])
    text = np.frombuffer(data, np.uint8, last)[first:] if data is not None else np.zeros(0, np.uint8)
    sums = np.zeros(last - first + 1, np.uint64)
    np.cumsum((text.astype(np.uint64) + np.uint64(1)) * _power(_BASE, len(text))[: len(text)], out=sums[1:])
    at = ends.astype(np.int64) - first
    return (sums[at[1:]] - sums[at[:-1]]) * _power(_INVERSE, len(text) + 1)[at[:-1]]


def _decimals(column: pa.Array) -> U64:
    """Hashes of both halves of the unscaled number and the scale: 1.5 and 1.50 differ."""
    if not len(column):
        return np.zeros(0, np.uint64)
    halves = np.frombuffer(column.buffers()[1], np.uint64)[2 * column.offset : 2 * (column.offset + len(column))]
    return _mix(halves[0::2] + np.uint64(column.type.scale)) + halves[1::2]


def _power(base: int, count: int) -> U64:
    """Returns base^0, base^1 … mod 2^64, at least `count` of them; cached, as batches are alike in size."""
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


@cache
def salt(name: str) -> np.uint64:
    """64-bit hash of a column's name, the same in every process."""
    return np.uint64(int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little"))
