"""The slack of events: how much longer a watermark would have had to wait for each of them. Pure.

With a watermark after each event, that is the largest event time before it minus the end of its window. At a delay d,
exactly the events with a slack of d or more are lost; so the distribution of the slack is the whole trade. Where a
window may be revised for a while, the slack is shorter by that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamgauge.base.units import PS, Tick
from streamgauge.records.advice import Question
from streamgauge.streams.disorder.definitions import BEFORE_ALL, Times, running_maximum


@dataclass(frozen=True)
class Judged:
    """Consecutive events beside what a watermark knows of them; times in ticks."""

    reached: Times  # the largest event time before each event; of the first event of all, its own time
    largest: Times  # the same, that of the event included
    ends: Times  # end of the first window that holds the event; without windows, a tick after the event
    slack: Times  # by which an event is lost from all of its windows
    slack_in_part: Times  # by which at least one window lacks the event


def judged(times: Times, before: int, question: Question) -> Judged:
    """Returns the slack of consecutive events, by fixed windows or event by event. before: largest time before them.

    An event that is judged by itself is late below the watermark, and not at it.
    """
    largest = running_maximum(times, before)
    reached = np.r_[before if before > BEFORE_ALL else times[0], largest[:-1]]
    ends = times - np.mod(times, question.slide) + question.slide if question.windows else times + 1
    in_part = reached - ends - question.allowed_lateness
    overlap = question.length - question.slide if question.windows else 0
    return Judged(reached, largest, ends, in_part - overlap if overlap else in_part, in_part)


def precision(tick: Tick) -> int:
    """The ticks of a millisecond, of which engines want whole numbers as a delay."""
    return PS["ms"] // PS[tick]


def rounded_up(delay: int, tick: Tick) -> int:
    return -(-delay // precision(tick)) * precision(tick)


def enough(slack: Times, lost: int, tick: Tick) -> int:
    """Returns the smallest delay, in whole milliseconds, at which at most so many of the events are lost."""
    late = slack[slack >= 0]
    if len(late) <= lost:
        return 0
    place = len(late) - 1 - lost
    return rounded_up(int(np.partition(late, place)[place]) + 1, tick)


def above(slack: Times, delays: npt.ArrayLike) -> Times:
    """Number of events that are lost at each of the ascending delays."""
    steps = np.bincount(np.searchsorted(delays, slack, side="right"), minlength=np.size(delays) + 1)
    lost: Times = len(slack) - np.cumsum(steps)[:-1]
    return lost


def revisions(events: Judged, delays: npt.ArrayLike, question: Question) -> Times:
    """Number of times, at each of the ascending delays, that an event within the allowed lateness revises a window."""
    total = np.zeros(np.size(delays), np.int64)
    for shift in range(0, question.length, question.slide):
        behind = events.reached - events.ends - shift
        total += above(behind[behind >= 0], delays) - above(behind - question.allowed_lateness, delays)
    return total
