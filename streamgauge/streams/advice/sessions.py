"""Counts what each watermark delay loses of sessions, by simulation. Pure.

Events at most the gap apart are of one session, as `lateness.sessions` has it. A session's answer is right if one
emitted session has exactly its events; its error is that of the largest piece that is emitted of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamgauge.base.arrow import Mask
from streamgauge.records.advice import Question, Trade
from streamgauge.streams.advice.slack import judged
from streamgauge.streams.advice.windows import Values, errors_of, wait
from streamgauge.streams.disorder.definitions import BEFORE_ALL, Times
from streamgauge.streams.disorder.profile import Spread
from streamgauge.streams.lateness.sessions import left_out, pieces


def trades(
    times: Times,
    keys: Times,
    gap: int,
    delays: Sequence[int],
    values: Values | None = None,
    *,
    joins_first: bool = True,
) -> list[Trade]:
    """Returns what each delay loses of a whole stream in its order. keys: a number for each.

    joins_first: an event that is late by itself may join an open session. open_windows counts sessions that merge as
    one from their first event on.
    """
    if not len(times):
        return [Trade(delay=delay, lost=0, lost_in_part=0, windows=0, windows_wrong=0) for delay in delays]
    events = judged(times, BEFORE_ALL, Question(answers="event"))
    true = sessions(times, keys, gap)
    sizes = np.bincount(true)
    made = []
    for delay in delays:
        piece = pieces(keys, times, events.reached - delay, gap, true, joins_first=joins_first)
        kept = piece >= 0
        missing = int((~kept).sum())
        _, first, number, counts = np.unique(piece[kept], return_index=True, return_inverse=True, return_counts=True)
        of, order = true[kept][first], np.argsort(counts, kind="stable")
        largest, best = np.zeros(len(sizes), np.int64), np.full(len(sizes), -1)
        largest[of[order]], best[of[order]] = counts[order], order
        wrong = largest < sizes
        value_error = None
        if values is not None and wrong.any():
            whole = np.bincount(true, weights=values)[wrong]
            sums = np.r_[np.bincount(number, weights=values[kept], minlength=len(counts)), 0.0]
            gone = np.abs(whole - sums[best[wrong]])  # the last sum is that of no piece
            with np.errstate(divide="ignore"):
                value_error = errors_of(np.divide(gone, np.abs(whole), out=np.zeros(len(gone)), where=gone > 0))
        ends = np.full(len(counts), BEFORE_ALL)
        np.maximum.at(ends, number, times[kept])
        ends += gap
        closed = np.searchsorted(events.largest, ends + delay)
        done = closed < len(times)
        opened = np.bincount(np.flatnonzero(kept)[first], minlength=len(times))
        shut = np.bincount(closed[done] + 1, minlength=len(times) + 1)[: len(times)]
        made.append(
            Trade(
                delay=delay, lost=missing, lost_in_part=missing, windows=len(sizes), windows_wrong=int(wrong.sum()),
                count_error=errors_of(1 - largest[wrong] / sizes[wrong]) if wrong.any() else None,
                value_error=value_error, wait=wait(Spread.of(events.largest[closed[done]] - ends[done])),
                open_windows=int(np.cumsum(opened - shut).max()),
            )
        )  # fmt: skip
    return made


def sessions(times: Times, keys: Times, gap: int) -> Times:
    """Returns the number of each event's session, if all events came in order."""
    order = np.lexsort((times, keys))
    begins = np.r_[True, (np.diff(keys[order]) != 0) | (np.diff(times[order]) > gap)]
    numbers = np.empty(len(times), np.int64)
    numbers[order] = np.cumsum(begins) - 1
    return numbers


def wrong(times: Times, keys: Times, gap: int, delay: int) -> Mask:
    """True for the sessions of a whole stream that no emitted one equals, by their numbers from `sessions`."""
    true = sessions(times, keys, gap)
    reached = judged(times, BEFORE_ALL, Question(answers="event")).reached
    piece = pieces(keys, times, reached - delay, gap, true, joins_first=True)
    kept = piece >= 0
    _, first, counts = np.unique(piece[kept], return_index=True, return_counts=True)
    sizes = np.bincount(true)
    largest = np.zeros_like(sizes)
    np.maximum.at(largest, true[kept][first], counts)
    return largest < sizes


def ends(times: Times, keys: Times, gap: int) -> Times:
    """The end of each session, by its number from `sessions`: its last time plus the gap, in ticks."""
    number = sessions(times, keys, gap)
    last = np.full(number.max() + 1, BEFORE_ALL)
    np.maximum.at(last, number, times)
    return last + gap


def lost(times: Times, keys: Times, gap: int, delay: int) -> Mask:
    """True for the events of a whole stream that are in no emitted session, if late events join open sessions."""
    reached = judged(times, BEFORE_ALL, Question(answers="event")).reached
    return left_out(keys, times, reached - delay, gap)
