"""Columns of texts as Arrow views: 16 bytes a row, which hold a short text or point into a buffer that rows share.

Arrow's format, "Variable-size Binary View Layout": the length as an int32; then up to 12 bytes of text, or the first
four bytes of a longer one, the number of its buffer, and its place there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgauge.base.arrow import Ints

#: one item of 16 bytes a row; numpy moves complex numbers whole
Views = NDArray[np.complex128]
#: places of rows; slice(None) for all
Rows = Ints | slice
_INLINE = 12
#: keeps the first n bytes of 12
_MASKS = np.tril(np.full((_INLINE + 1, _INLINE), 255, np.uint8), -1)


@dataclass(frozen=True)
class Texts:
    """Texts, and the buffer into which those longer than 12 bytes point. lengths: bytes of each."""

    views: Views
    lengths: Ints
    data: NDArray[np.uint8]

    def take(self, places: NDArray[np.signedinteger[Any]]) -> Texts:
        return Texts(self.views[places], self.lengths[places], self.data)


def cut_out(data: NDArray[np.uint8], starts: Ints, lengths: Ints) -> Texts:
    """Texts data[start : start + length]. Every start must be at least 12 bytes before the end of data."""
    words = np.lib.stride_tricks.sliding_window_view(data, _INLINE)[starts]
    words &= _MASKS[np.minimum(lengths, _INLINE)]
    views = np.empty((len(starts), 4), np.int32)
    views[:, 0], views[:, 1:] = lengths, words.view(np.int32)
    long = lengths > _INLINE
    views[long, 2], views[long, 3] = 0, starts[long]
    return Texts(views.reshape(-1).view(np.complex128), lengths, data)


def pool(texts: Sequence[str]) -> Texts:
    """Texts to take from."""
    parts = [text.encode() for text in texts]
    lengths = np.array([len(part) for part in parts], np.int64)
    data = np.frombuffer(b"".join(parts) + bytes(_INLINE), np.uint8)
    return cut_out(data, np.cumsum(lengths) - lengths, lengths)


def column(count: int, valid: pa.Buffer | None, parts: Sequence[tuple[Rows, Texts]]) -> pa.Array:
    """An array of string views. valid: bitmap of the rows that have a text. parts: places of rows, and their texts."""
    whole = len(parts) == 1 and isinstance(parts[0][0], slice)
    views = parts[0][1].views if whole else np.zeros(count, np.complex128)
    for number, (at, texts) in enumerate(() if whole else parts):
        own = texts.views
        if number:
            own = own.copy()
            own.view(np.int32).reshape(-1, 4)[texts.lengths > _INLINE, 2] = number
        views[at] = own
    buffers = [pa.py_buffer(texts.data) for _, texts in parts]
    return pa.Array.from_buffers(pa.string_view(), count, [valid, pa.py_buffer(views), *buffers])
