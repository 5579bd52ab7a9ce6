"""Counts the pairs of an interval join that each watermark delay loses. Pure.

A pair is missing exactly if one of its events is late. If both are accepted, the one that comes second is at the
watermark or above, and its partner at most the length behind it: so the partner's state is still there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamgauge.base.arrow import Mask
from streamgauge.records.advice import Question, Trade
from streamgauge.streams.advice.slack import judged
from streamgauge.streams.disorder.definitions import BEFORE_ALL, Times


def with_pairs(curve: Sequence[Trade], times: Times, keys: Times, left: Mask, length: int) -> list[Trade]:
    """Returns the curve of a whole stream's events with the pairs. keys: a number for each event. left: one half."""
    slack = judged(times, BEFORE_ALL, Question(answers="event")).slack
    every, made = pairs(times, keys, left, length), []
    for one in curve:
        kept = slack < one.delay
        missing = every - pairs(times[kept], keys[kept], left[kept], length)
        made.append(one.model_copy(update={"windows": every, "windows_wrong": missing}))
    return made


def pairs(times: Times, keys: Times, left: Mask, length: int) -> int:
    """Number of pairs of both halves with one key and at most the length between them; none is enumerated."""
    known, ranks = np.unique(times[~left], return_inverse=True)
    codes = np.unique(keys, return_inverse=True)[1].astype(np.int64) * (len(known) + 1)
    right = np.sort(codes[~left] + ranks)
    low = codes[left] + np.searchsorted(known, times[left] - length)
    high = codes[left] + np.searchsorted(known, times[left] + length, side="right")
    return int((np.searchsorted(right, high) - np.searchsorted(right, low)).sum())
