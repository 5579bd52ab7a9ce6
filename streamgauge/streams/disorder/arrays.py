"""Functions on sorted arrays that the generation needs: order, ranges, next larger."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from streamgauge.streams.disorder.definitions import Times


def at_index(array: Any, index: npt.NDArray[np.intp] | None) -> Any:
    return array if index is None else array[index]


def next_larger(time: Times) -> npt.NDArray[np.intp] | None:
    """Index of the first later record with a strictly larger time; None when that is always the next one."""
    steps = np.flatnonzero(time[1:] != time[:-1])
    if len(steps) == len(time) - 1:
        return None
    ends = np.r_[steps + 1, len(time)]
    return np.repeat(ends, np.diff(np.r_[0, ends]))


def range_maximum(
    values: npt.NDArray[np.uint16], begin: npt.NDArray[np.intp], end: npt.NDArray[np.intp]
) -> npt.NDArray[np.uint16]:
    """max(values[begin:end]) for many ranges: a sparse table, one level at a time."""
    level_of = np.frexp((end - begin).astype(np.float64))[1] - 1
    maxima = np.empty(len(begin), np.uint16)
    row = values
    for level in range(int(level_of.max()) + 1):
        if level:
            half = 1 << (level - 1)
            row = np.maximum(row[:-half], row[half:])
        here = np.flatnonzero(level_of == level)
        maxima[here] = np.maximum(row[begin[here]], row[end[here] - (1 << level)])
    return maxima


def stable_order(ingestion: Times) -> npt.NDArray[np.intp]:
    """Stable argsort; where they fit, (time, position) pairs are packed into one integer each and sorted."""
    count = len(ingestion)
    bits = (count - 1).bit_length()
    smallest = int(ingestion.min())
    if (int(ingestion.max()) - smallest).bit_length() + bits >= 63:
        return np.argsort(ingestion, kind="stable")
    packed = ingestion - smallest
    packed <<= bits
    packed |= np.arange(count)
    packed.sort()
    return np.bitwise_and(packed, (1 << bits) - 1, out=packed)
