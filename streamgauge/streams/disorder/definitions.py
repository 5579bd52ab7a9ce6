"""Measures of disorder on plain numpy arrays: the readable reference for the distributed code.

All functions take event times as int64 in stream order. Delays are those of docs/definitions.md; inversions, distance,
runs and interleaved those of Chandramouli et al., "Impatience Sort", ICDE 2018, section II.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64]
BEFORE_ALL = int(np.iinfo(np.int64).min)


def running_maximum(event_times: Times, before: int = BEFORE_ALL) -> Times:
    """Base of each event: the largest time up to it, its own included, unlike M(i). before: largest before these."""
    maximum = np.maximum.accumulate(event_times)
    return np.maximum(maximum, before, out=maximum) if before > BEFORE_ALL else maximum


def out_of_order(event_times: Times, before: int = BEFORE_ALL) -> npt.NDArray[np.bool_]:
    """True where an event's time lies strictly below the running maximum before it."""
    return running_maximum(event_times, before) > event_times


def delays(event_times: Times, before: int = BEFORE_ALL) -> Times:
    """Delays (running maximum − event time) of the out-of-order events alone, in stream order."""
    behind = running_maximum(event_times, before) - event_times
    return behind[behind > 0]


def adjacent_descents(event_times: Times) -> int:
    """Number of events earlier than their direct predecessor; the number of runs is one more."""
    return int((event_times[1:] < event_times[:-1]).sum())


def inversions(event_times: Times) -> int:
    """Number of pairs i < j with e(i) > e(j), in O(n log² n): one stable sort per bit of the ranks."""
    ranks = np.unique(event_times, return_inverse=True)[1].astype(np.int64)
    pairs = 0
    for bit in reversed(range(int(ranks.max(initial=0)).bit_length())):
        # within a group of equal higher bits: every 1 before a 0 is one inverted pair
        prefix, one = ranks >> (bit + 1), (ranks >> bit) & 1
        ones_before = np.cumsum(one) - one
        starts = np.flatnonzero(np.r_[True, prefix[1:] != prefix[:-1]])
        sizes = np.diff(np.r_[starts, len(ranks)])
        pairs += int(((ones_before - np.repeat(ones_before[starts], sizes)) * (1 - one)).sum())
        ranks = ranks[np.argsort(ranks >> bit, kind="stable")]
    return pairs


def distance(event_times: Times) -> int:
    """Largest j − i among inverted pairs; 0 without any."""
    first_larger = np.searchsorted(running_maximum(event_times), event_times, side="right")
    return int(np.maximum(np.arange(len(event_times)) - first_larger, 0).max(initial=0))


def interleaved(event_times: Times) -> int:
    """Smallest number of non-decreasing subsequences that cover the stream.

    By Dilworth's theorem it is the length of the longest strictly decreasing subsequence.
    """
    ends: list[int] = []  # last value of each pile (a non-decreasing sequence), negated so that the list ascends
    for value in event_times.tolist():
        place = bisect_left(ends, -value)  # the pile with the largest end ≤ value, or a new one
        ends[place : place + 1] = [-value]
    return len(ends)


def rank_of(quantile: float, count: int) -> int:
    """1-based nearest rank of a quantile among `count` values."""
    return max(1, -int(-quantile * count // 1))
