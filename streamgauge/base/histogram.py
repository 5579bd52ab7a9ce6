"""A mergeable histogram of latencies: int64 nanoseconds in, quantiles within 0.4 % out.

Log-linear buckets: 128 of equal width in each power of two; below 256 every integer has its own.
Bucket 0 holds the value 0; bucket ``1 + 128 * e + floor((v / 2**e - 1) * 128)`` with ``e = floor(log2 v)``
holds v. That number is the exponent and the first 7 mantissa bits of v as a float64, so a whole batch is
bucketed by one conversion, one shift and one ``bincount``, without a logarithm.

No library is used: the Python versions of HdrHistogram (``record_value``, about 1 µs a value by its own
documentation) and DDSketch (``add``) take one value a call. A batch of a million would cost more than
the link that brought it. The buckets here are those of HdrHistogram in principle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

_BITS = 7
#: mantissa bits of a float64 (of 52) to drop; the bits that are left number the buckets from 1.0 on
_SHIFT = 52 - _BITS
_FIRST = (1023 << _BITS) - 1  # so that the value 1 falls into bucket 1
_BUCKETS = (63 << _BITS) + 2  # the conversion may round 2**63 - 1 up to 2**63


class Counts(TypedDict):
    """A histogram as JSON, with only the buckets in use."""

    count: int
    negative: int
    sum: int
    min: int | None
    max: int | None
    buckets: list[int]
    counts: list[int]


class Histogram:
    """Counts of values >= 0 with exact count, sum, min and max; negative values are only counted, apart."""

    __slots__ = ("_counts", "count", "max", "min", "negative", "sum")

    def __init__(self) -> None:
        self._counts = np.zeros(_BUCKETS, np.int64)
        self.count = 0
        self.sum = 0
        self.min: int | None = None
        self.max: int | None = None
        self.negative = 0

    def add(self, values: NDArray[np.integer[Any]]) -> None:
        """Adds a batch of integers (nanoseconds), any shape. Raises TypeError on anything but integers."""
        values = np.asarray(values)
        if values.dtype.kind not in "iu":
            raise TypeError(f"found values of type {values.dtype}, allowed: integers")
        values = values.astype(np.int64, copy=False).ravel()
        if values.size and values.min() < 0:
            kept = values[values >= 0]
            self.negative += values.size - kept.size
            values = kept
        if not values.size:
            return
        buckets = values.astype(np.float64).view(np.int64)
        buckets >>= _SHIFT
        buckets -= _FIRST
        np.maximum(buckets, 0, out=buckets)  # the value 0 has no exponent
        counts = np.bincount(buckets)
        self._counts[: counts.size] += counts
        # in halves, because a sum of int64 may not fit into one
        total = (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())
        self._extend(values.size, total, int(values.min()), int(values.max()))

    def merge(self, other: Histogram) -> None:
        """Adds all values of another histogram."""
        self.negative += other.negative
        if other.min is not None and other.max is not None:
            self._counts += other._counts
            self._extend(other.count, other.sum, other.min, other.max)

    def _extend(self, count: int, total: int, low: int, high: int) -> None:
        self.count += count
        self.sum += total
        self.min = low if self.min is None else min(self.min, low)
        self.max = high if self.max is None else max(self.max, high)

    def quantile(self, q: float) -> int | None:
        """The value of nearest rank ceil(q * count), within 0.4 %; None when empty. Raises ValueError beyond [0, 1]."""
        if not 0 <= q <= 1:
            raise ValueError(f"found quantile {q}, allowed: 0 to 1")
        if self.min is None or self.max is None:
            return None
        rank = max(1, math.ceil(Fraction(repr(float(q))) * self.count))  # exact: 0.07 * 100 is 7
        if rank == 1:
            return self.min
        if rank == self.count:
            return self.max
        bucket = int(np.searchsorted(np.cumsum(self._counts), rank))
        first, last = _edge(bucket), _edge(bucket + 1) - 1
        return min(max((first + last) // 2, self.min), self.max)

    @property
    def mean(self) -> float | None:
        return self.sum / self.count if self.count else None

    def points(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The middle of each bucket in use, and its count."""
        used = np.flatnonzero(self._counts)
        return np.array([(_edge(b) + _edge(b + 1) - 1) / 2 for b in used.tolist()]), self._counts[used]

    def to_dict(self) -> Counts:
        used = np.flatnonzero(self._counts)
        return {
            "count": self.count,
            "negative": self.negative,
            "sum": self.sum,
            "min": self.min,
            "max": self.max,
            "buckets": used.tolist(),
            "counts": self._counts[used].tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The histogram that to_dict wrote. Raises ValueError for other data: it comes from another process."""
        histogram = cls()
        try:
            buckets, counts = (np.array([_whole(n) for n in data[k]], np.int64) for k in ("buckets", "counts"))
            histogram.count, histogram.negative, histogram.sum = (_whole(data[k]) for k in ("count", "negative", "sum"))
            histogram.min, histogram.max = (None if data[k] is None else _whole(data[k]) for k in ("min", "max"))
            np.add.at(histogram._counts, buckets, counts)
            sound = (
                buckets.shape == counts.shape
                and bool((counts > 0).all() and (buckets >= 0).all() and (np.diff(buckets) > 0).all())
                and sum(counts.tolist()) == histogram.count
                and 0 <= histogram.negative < 2**63
                and histogram._spans(buckets)
            )
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as problem:
            raise ValueError(f"not a histogram: {type(problem).__name__}: {problem}") from None
        if not sound:
            raise ValueError("not a histogram: its counts contradict each other")
        return histogram

    def _spans(self, buckets: NDArray[np.int64]) -> bool:
        """True if least, greatest and sum agree with the buckets in use. A sum that has wrapped is mended first."""
        if self.min is None or self.max is None:
            return self.min is self.max is None and self.count == self.sum == 0
        if not 0 <= self.min <= self.max < 2**63 or not self.count:
            return False
        ends = Histogram()
        ends.add(np.array([self.min, self.max]))
        used = np.flatnonzero(ends._counts)
        least, most = self.count * self.min, self.count * self.max
        if not least <= self.sum <= most:
            self.sum = least + (self.sum - least) % 2**64  # a sum of 64 bits has wrapped in the JVM
        return self.sum <= most and (used[0], used[-1]) == (buckets[0], buckets[-1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and self.to_dict() == other.to_dict()

    def __repr__(self) -> str:
        return f"Histogram(count={self.count}, negative={self.negative}, min={self.min}, max={self.max})"


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"found {value!r:.40}, allowed: whole numbers")
    return value


def _edge(bucket: int) -> int:
    if bucket == 0:
        return 0
    exponent, step = divmod(bucket - 1, 1 << _BITS)
    return -(-(((1 << _BITS) + step) << exponent) >> _BITS)
