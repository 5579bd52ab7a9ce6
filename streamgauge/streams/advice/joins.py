"""Counts the pairs of an interval join that each watermark delay loses. Pure.

A pair is missing exactly if one of its events is late. If both are accepted, the one that comes second is at the
watermark or above, and its partner at most the length behind it: so the partner's state is still there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamgauge.records.advice import Question, Trade
from streamgauge.streams.advice.slack import judged
from streamgauge.streams.disorder.definitions import BEFORE_ALL, Times
from streamgauge.streams.lateness.late import Mask


def trades(times: Times, keys: Times, left: Mask, length: int, delays: Sequence[int]) -> list[Trade]:
    """Returns what each delay loses of a whole stream in its order. keys: a number for each. left: one half."""
    if not len(times):
        return [Trade(delay=delay, lost=0, lost_in_part=0, windows=0, windows_wrong=0) for delay in delays]
    slack = judged(times, BEFORE_ALL, Question(answers="event")).slack
    every, made = pairs(times, keys, left, length), []
    for delay in delays:
        kept = slack < delay
        lost = int((~kept).sum())
        missing = every - pairs(times[kept], keys[kept], left[kept], length) if lost else 0
        made.append(Trade(delay=delay, lost=lost, lost_in_part=lost, windows=every, windows_wrong=missing))
    return made


def pairs(times: Times, keys: Times, left: Mask, length: int) -> int:
    """Number of pairs of both halves with one key and at most the length between them; none is enumerated."""
    known, ranks = np.unique(times[~left], return_inverse=True)
    codes = np.unique(keys, return_inverse=True)[1].astype(np.int64) * (len(known) + 1)
    right = np.sort(codes[~left] + ranks)
    low = codes[left] + np.searchsorted(known, times[left] - length)
    high = codes[left] + np.searchsorted(known, times[left] + length, side="right")
    return int((np.searchsorted(right, high) - np.searchsorted(right, low)).sum())
