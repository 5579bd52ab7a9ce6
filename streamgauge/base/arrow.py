"""Arrow arrays over numpy's memory, and numpy's arrays over Arrow's.

pyarrow's own conversions import pandas at their first call, which takes each process up to half a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def int64s(values: Ints, valid: Mask | None = None) -> pa.Array:
    """Arrow array, over the same memory if that is contiguous; null where `valid` is false."""
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.int64(), len(values), [bits, pa.py_buffer(np.ascontiguousarray(values))])


def bools(mask: Mask) -> pa.Array:
    bits = pa.py_buffer(np.packbits(mask, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, bits])


def ints(array: pa.Array) -> Ints:
    """Values of an int64 array without nulls, over the same memory."""
    if not len(array):
        return np.zeros(0, np.int64)
    return np.frombuffer(array.buffers()[1], np.int64, len(array), array.offset * 8)


def flags(array: pa.Array) -> Mask:
    """Values of a boolean array without nulls."""
    bits = np.frombuffer(array.buffers()[1] or b"", np.uint8)
    mask: Mask = np.unpackbits(bits, bitorder="little")[array.offset : array.offset + len(array)].view(np.bool_)
    return mask


def replaced(rows: Rows, columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> Rows:
    """The rows with these values in place of their own, by the column's name."""
    for name, values in columns.items():
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(place), values)
    return rows
