"""The answers of windows at fixed places: which stay wrong, by how much, how late they come, how many are open. Pure.

Tasks measure shares of the stream; their figures are merged in the order of the stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamgauge.records.advice import Errors, Question, Wait
from streamgauge.streams.advice.slack import Judged
from streamgauge.streams.disorder.definitions import BEFORE_ALL, Times
from streamgauge.streams.disorder.profile import Spread

Values = npt.NDArray[np.float64]
#: an arrival time that nobody knows
UNKNOWN = BEFORE_ALL


def _starts(*sorted_by: Times) -> npt.NDArray[np.intp]:
    """Index of the first row of each group of equal ones."""
    if not len(sorted_by[0]):
        return np.zeros(0, np.intp)
    changes = np.logical_or.reduce([column[1:] != column[:-1] for column in sorted_by])
    return np.flatnonzero(np.r_[True, changes])


@dataclass(frozen=True)
class Panes:
    """Figures of panes, or of windows, by key and end; rows in the order of end, key.

    A pane is what lies between the ends of two windows, one after the other. Its end is that of its first window.
    """

    ends: Times
    keys: Times
    events: Times
    sums: Values
    first: Times  # number of its first event in the stream
    reached: Times  # largest time before its first event
    opened: Times  # the same, that of the event included
    last_reached: Times  # largest time before its last event

    @classmethod
    def of(cls, events: Judged, number: int, keys: Times | None, values: Values | None) -> Panes:
        """Measures consecutive events, of which the first has that number in the stream."""
        keys = np.zeros(len(events.ends), np.int64) if keys is None else keys
        order = np.lexsort((keys, events.ends)) if keys.any() else np.argsort(events.ends, kind="stable")
        ends, keys = events.ends[order], keys[order]
        starts = _starts(ends, keys)
        stops = np.r_[starts[1:], len(ends)]
        sums = np.zeros(len(starts)) if values is None else np.add.reduceat(values[order], starts)
        first, last = order[starts], order[stops - 1]
        return cls(
            ends[starts], keys[starts], stops - starts, sums, first + number,
            events.reached[first], events.largest[first], events.reached[last],
        )  # fmt: skip

    @classmethod
    def merged(cls, parts: Sequence[Panes]) -> Panes:
        """Merges parts into one row for each end and key."""
        columns = [np.concatenate([getattr(part, name) for part in parts]) for name in cls.__dataclass_fields__]
        order = np.lexsort((columns[1], columns[0]))
        ends, keys, events, sums, first, reached, opened, last = (column[order] for column in columns)
        starts = _starts(ends, keys)
        if not len(starts):
            return parts[0]
        return cls(
            ends[starts], keys[starts], np.add.reduceat(events, starts), np.add.reduceat(sums, starts),
            np.minimum.reduceat(first, starts), np.minimum.reduceat(reached, starts),
            np.minimum.reduceat(opened, starts), np.maximum.reduceat(last, starts),
        )  # fmt: skip

    def windows(self, question: Question) -> Panes:
        """Figures of the windows, each merged from all panes within it."""
        shifts = range(0, question.length, question.slide)
        if len(shifts) == 1:
            return self
        rest = [getattr(self, name) for name in Panes.__dataclass_fields__ if name != "ends"]
        return Panes.merged([Panes(self.ends + shift, *rest) for shift in shifts])


@dataclass(frozen=True)
class Lacks:
    """Events that windows lack, by end, key and the number of delays at which they do: the smallest ones."""

    ends: Times
    keys: Times
    steps: Times
    events: Times
    sums: Values

    @classmethod
    def of(cls, events: Judged, question: Question, delays: Times, keys: Times | None, values: Values | None) -> Lacks:
        """Looks at the windows of consecutive events. delays: ascending."""
        late = np.flatnonzero(events.slack_in_part >= delays[0])
        ends, reached = events.ends[late], events.reached[late] - question.allowed_lateness
        keys = np.zeros(len(late), np.int64) if keys is None else keys[late]
        sums = np.zeros(len(late)) if values is None else values[late]
        parts, last = [], ends + (question.length - question.slide)
        while len(ends):
            steps = np.searchsorted(delays, reached - ends, side="right")
            parts.append(cls(ends, keys, steps, np.ones(len(ends), np.int64), sums))
            stays = (ends + question.slide <= last) & (ends + question.slide <= reached - delays[0])
            ends, reached, keys, sums, last = (one[stays] for one in (ends, reached, keys, sums, last))
            ends = ends + question.slide
        return cls.merged(parts)

    @classmethod
    def merged(cls, parts: Sequence[Lacks]) -> Lacks:
        """Merges parts into one row for each end, key and number of delays."""
        if not parts:
            none = np.zeros(0, np.int64)
            return cls(none, none, none, none, np.zeros(0))
        columns = [np.concatenate([getattr(part, name) for part in parts]) for name in cls.__dataclass_fields__]
        order = np.lexsort((columns[2], columns[1], columns[0]))
        ends, keys, steps, events, sums = (column[order] for column in columns)
        starts = _starts(ends, keys, steps)
        if not len(starts):
            return cls(ends, keys, steps, events, sums)
        return cls(
            ends[starts], keys[starts], steps[starts], np.add.reduceat(events, starts), np.add.reduceat(sums, starts)
        )

    def places(self, windows: Panes) -> npt.NDArray[np.intp]:
        """Place of each row's window among the windows."""
        keyed = np.unique(np.r_[windows.keys, self.keys], return_inverse=True)[1]
        width = int(keyed.max(initial=0)) + 1
        ranks = np.searchsorted(windows.ends, self.ends)  # the first of that end
        of_windows = np.searchsorted(windows.ends, windows.ends) * width + keyed[: len(windows.keys)]
        return np.searchsorted(of_windows, ranks * width + keyed[len(windows.keys) :])


@dataclass(frozen=True)
class Wrong:
    """Windows that stay wrong at a delay: their number, and by how much."""

    windows: int
    count_error: Errors | None
    value_error: Errors | None


def wrong(windows: Panes, lacks: Lacks, delays: int, *, with_values: bool) -> list[Wrong]:
    """Returns how many windows are wrong at each of so many delays, and by how much."""
    places = lacks.places(windows)
    return [_wrong(windows, lacks, places, number, with_values) for number in range(delays)]


def _wrong(windows: Panes, lacks: Lacks, of_windows: npt.NDArray[np.intp], number: int, with_values: bool) -> Wrong:
    rows = lacks.steps > number
    if not rows.any():
        return Wrong(0, None, None)
    places, inverse = np.unique(of_windows[rows], return_inverse=True)
    lost = np.bincount(inverse, weights=lacks.events[rows])
    counts = errors_of(lost / windows.events[places])
    if not with_values:
        return Wrong(len(places), counts, None)
    lacking, whole = np.bincount(inverse, weights=lacks.sums[rows]), windows.sums[places]
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(lacking == 0, 0.0, np.abs(lacking) / np.abs(whole))
    return Wrong(len(places), counts, errors_of(shares))


def errors_of(shares: Values) -> Errors:
    return Errors(median=float(np.median(shares)), worst=float(shares.max()))


def slack(windows: Panes, question: Question) -> Times:
    """The slack of each window: at a delay of so much or less, it stays wrong."""
    return windows.last_reached - windows.ends - question.allowed_lateness


def most_open(windows: Panes, delay: int) -> int:
    """Returns the most windows that are open at once, from the first event that each accepts on.

    delay: from a window's end until it takes no event.
    """
    accepted = np.flatnonzero(windows.reached - windows.ends < delay)
    if not len(accepted):
        return 0
    by_opening = accepted[np.argsort(windows.first[accepted], kind="stable")]
    closed = np.searchsorted(windows.ends[accepted], windows.opened[by_opening] - delay, side="right")
    return int((np.arange(1, len(accepted) + 1) - closed).max())


@dataclass
class Waits:
    """Times from the ends of windows until they are closed, at each delay; mergeable."""

    times: list[Spread]
    arrivals: list[Spread]

    @classmethod
    def of(cls, events: Judged, arrival: Times | None, known: Panes, delays: Sequence[int]) -> Waits:
        """Looks at the windows that consecutive events close. known: all windows of the stream.

        arrival: of each event; UNKNOWN where it has none.
        """
        rises = np.flatnonzero(events.largest > events.reached)
        times, begin = events.largest[rises], int(events.reached[0])
        waits = cls([], [])
        for delay in delays:
            low, high = np.searchsorted(known.ends, [begin - delay, int(events.largest[-1]) - delay], side="right")
            ends = known.ends[low:high]
            ends = ends[known.reached[low:high] - ends < delay]
            closing = np.searchsorted(times, ends + delay)
            waits.times.append(Spread.of(times[closing] - ends))
            if arrival is not None:
                at = arrival[rises[closing]]
                waits.arrivals.append(Spread.of((at - ends)[at != UNKNOWN]))
        return waits

    def __add__(self, more: Waits) -> Waits:
        def both(some: list[Spread], others: list[Spread]) -> list[Spread]:
            return [one + other for one, other in zip(some, others, strict=True)]

        return Waits(both(self.times, more.times), both(self.arrivals, more.arrivals))


def wait(spread: Spread) -> Wait:
    """The quantiles of how long answers took."""
    known = spread.approximate()
    return Wait(p50=_whole(known.p50), p99=_whole(known.p99))


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
