"""Deals keys over partitions as Kafka's Java client does: by murmur2 of their bytes. Pure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import Ints

#: types of columns that can be a record's key
KINDS = ("string", "int64")
_SEED, _M = np.uint32(0x9747B28C), np.uint32(0x5BD1E995)


def texts(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Returns the keys of a column, as UTF-8: texts, and whole numbers in decimal."""
    plain = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return pc.cast(plain, pa.string()).cast(pa.binary())


def partitions_of(column: pa.ChunkedArray | pa.Array, partitions: int) -> Ints:
    """Returns the partition of each key; rows without a key take turns, by their number."""
    distinct = pc.dictionary_encode(texts(column))
    of_distinct = (murmur2(distinct.dictionary) & 0x7FFFFFFF).astype(np.int64) % partitions
    place: Ints = pc.fill_null(distinct.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    turns = np.arange(len(place)) % partitions
    return np.where(place < 0, turns, of_distinct[place]) if len(of_distinct) else turns


def key_of(partition: int, partitions: int, kind: pa.DataType) -> str | int:
    """Returns a key that is dealt to that partition, and that no event is meant to have: sentinel-7, or -7."""
    first, tried = 1, 16 * partitions
    while True:
        numbers = range(first, first + tried)
        keys = [-number if pa.types.is_integer(kind) else f"sentinel-{number}" for number in numbers]
        there = np.flatnonzero(partitions_of(pa.array(keys, kind), partitions) == partition)
        if len(there):
            return keys[int(there[0])]
        first += tried


def murmur2(keys: pa.Array) -> npt.NDArray[np.uint32]:
    """Returns the hash of each value of a binary array without nulls, as org.apache.kafka.common.utils.Utils does."""
    _, offsets, data = keys.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(keys) + 1, keys.offset * 4).astype(np.int64) if len(keys) else [0]
    begin, length = np.asarray(bounds[:-1], np.int64), np.diff(bounds)
    # with four bytes to spare behind the last key
    octets = np.append(np.frombuffer(data or b"", np.uint8), np.zeros(4, np.uint8)).astype(np.uint32)
    hashed = _SEED ^ length.astype(np.uint32)
    words, rest = np.divmod(length, 4)
    for number in range(int(words.max(initial=0))):
        here = np.flatnonzero(words > number)
        at = begin[here] + 4 * number
        word = (octets[at] | octets[at + 1] << 8 | octets[at + 2] << 16 | octets[at + 3] << 24) * _M
        hashed[here] = hashed[here] * _M ^ (word ^ word >> 24) * _M
    end = begin + 4 * words
    for count, shift in ((3, 16), (2, 8), (1, 0)):
        here = np.flatnonzero(rest >= count)
        hashed[here] ^= octets[end[here] + count - 1] << shift
    hashed = np.where(rest > 0, hashed * _M, hashed)
    hashed = (hashed ^ hashed >> np.uint32(13)) * _M
    return hashed ^ hashed >> np.uint32(15)
