"""Tells whether a series of a long run is level or growing, by how much an hour, and when something would be full.

The slope is that of Theil and Sen (1950, 1968), which spikes hardly move. Its interval inverts Kendall's test. Samples
next to each other are alike, so the test counts them as fewer, as Hamed and Rao do (1998). How much fewer follows from
the residuals' autocorrelation, corrected for its bias, which is downward. A series grows if its interval is above zero,
and if both halves go on growing: a step and a warm-up that ends are no leak. `python -m benchmarks.trend` prints how
often it errs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from streamgauge.base.words import counted

Series = Sequence[float] | np.ndarray
Kind = Literal["level", "growing", "falling", "not clear"]
HOUR_S = 3600.0
#: probability that any of the series of a run, all level, is found to grow or to fall
ALPHA = 0.05
#: the first part of a series is not judged: a process that is warm still fills its memory for a while
SETTLING = 0.25
#: a series is judged by the medians of at most so many equal parts
MOST = 120
#: a record keeps at most so many points of a series
KEPT = 300
#: parts of a heap's series, each with a collection or more
LOWEST = 40
#: fewest samples that are judged, and fewest that count as independent
LEAST, LEAST_APART = 16, 5.0
#: a half that grows by less than this part of the whole's rate, by an interval with this alpha, does not go on
_PART, _DOUBT = 1 / 2, 0.4


@dataclass(frozen=True)
class Trend:
    """Judgement of a series. Rates are in its unit an hour, within an interval of 95 % over all series of a run."""

    kind: Kind
    samples: int  # that were judged
    apart: float  # so many independent ones tell as much
    level: float | None = None  # at the end
    per_hour: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Full:
    """Hours until something is full. high: None if it may never be."""

    hours: float
    low: float
    high: float | None


def trend(seconds: Series, values: Series, *, series: int = 1, alpha: float = ALPHA) -> Trend:
    """Judges the values at these ascending seconds. series: number of series that are judged together."""
    at, seen = np.asarray(seconds, dtype=float), np.asarray(values, dtype=float)
    if at.size:
        judged = at >= at[0] + SETTLING * (at[-1] - at[0])
        at, seen = at[judged], seen[judged]
    if at.size < LEAST:
        return Trend("not clear", at.size, at.size, reason=f"{counted(at.size, 'sample')}, at least {LEAST} are needed")
    samples = at.size
    at, seen = medians(at, seen, MOST)
    slopes, slope = _slopes(at, seen)
    rest = seen - np.median(seen) - slope * (at - np.median(at))
    level = float(np.median(seen[-max(1, seen.size // 10) :]))
    if not np.ptp(rest) > 1e-9 * max(1e-300, float(np.abs(seen).max())):  # a straight line
        kind: Kind = "level" if not slope else "growing" if slope > 0 else "falling"
        rate = slope * HOUR_S
        return Trend(kind, samples, seen.size, level, rate, rate, rate)
    apart = max(1.0, seen.size / alikeness(rest))
    if apart < LEAST_APART:
        reason = f"its samples are so alike that they tell as much as {apart:.1f}; a longer run tells more"
        return Trend("not clear", samples, apart, level, slope * HOUR_S, reason=reason)
    low, high = _interval(slopes, seen, apart, alpha / series)
    kind, reason = "level", ""
    if low > 0 or high < 0:
        kind = "growing" if slope > 0 else "falling"
        if not _goes_on(at, seen, slope, apart):
            way = "rose" if slope > 0 else "fell"
            kind, reason = "level", f"it {way}, but does not go on: a step, or a warm-up that ends"
    return Trend(kind, samples, apart, level, slope * HOUR_S, low * HOUR_S, high * HOUR_S, reason)


def _goes_on(at: np.ndarray, seen: np.ndarray, slope: float, apart: float) -> bool:
    """False if one half grows by less than half of the whole's rate, as after a step, or if the growth ends.

    It ends if a parabola bends that way, and has lost half of the rate at its end.
    """
    middle, way = seen.size // 2, np.sign(slope)
    for part in (slice(middle), slice(middle, None)):
        slopes, _ = _slopes(at[part], way * seen[part])
        if _interval(slopes, seen[part], apart / 2, _DOUBT)[1] < _PART * abs(slope):
            return False
    time = (at - at.mean()) / np.ptp(at)
    shape = np.stack([np.ones_like(time), time, time**2], axis=1)
    found, squares, *_ = np.linalg.lstsq(shape, way * seen, rcond=None)
    error = math.sqrt(float(squares[0]) / max(1.0, apart - 3) * float(np.linalg.inv(shape.T @ shape)[2, 2]))
    return not (found[2] < -error and found[1] + found[2] < _PART * found[1])


def full(found: Trend, limit: float) -> Full | None:
    """Returns when a growing series reaches its limit; None if it does not grow."""
    if found.kind != "growing" or found.level is None or not found.per_hour or not found.high or found.low is None:
        return None
    left = max(0.0, limit - found.level)
    return Full(left / found.per_hour, left / found.high, left / found.low if found.low > 0 else None)


def alikeness(rest: np.ndarray) -> float:
    """Returns how many neighbours tell as much as one independent sample; residuals of a line are given.

    It is the larger one of two estimates: that of an AR(1) process, and the sum of autocorrelations over the first lags
    whose pairs are positive (Geyer, 1992).
    """
    count = rest.size
    centred = rest - rest.mean()
    squares = float(centred @ centred)
    lags = range(1, max(2, count // 3))
    found = np.array([float(centred[lag:] @ centred[:-lag]) / squares for lag in lags])
    unbiased = (count * found + 2) / (count - 4)  # of residuals of a line; exact for AR(1) at the first lag alone
    first = min(max(float(unbiased[0]), 0.0), 1 - 1 / count)
    summed = 1.0
    for lag in range(0, found.size - 1, 2):
        pair = float(found[lag] + found[lag + 1])
        if pair <= 0:
            break
        summed += 2 * pair
    return max(1.0, (1 + first) / (1 - first), summed)


def medians(seconds: Series, values: Series, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean times and medians of at most so many parts of a series."""
    return _of_parts(seconds, values, most, np.median)


def kept_points(seconds: Series, values: Series) -> tuple[tuple[float, float], ...]:
    """The points of a series that a record keeps."""
    at, seen = medians(seconds, values, KEPT)
    return tuple(zip(at.tolist(), seen.tolist(), strict=True))


def lowest(seconds: Series, values: Series, most: int = LOWEST) -> tuple[np.ndarray, np.ndarray]:
    """Mean times and least values of at most so many parts of a series: of a heap, what collections leave of it."""
    return _of_parts(seconds, values, most, np.min)


def _of_parts(
    seconds: Series, values: Series, most: int, of: Callable[[np.ndarray], float]
) -> tuple[np.ndarray, np.ndarray]:
    at, seen = np.asarray(seconds, dtype=float), np.asarray(values, dtype=float)
    if at.size <= most:
        return at, seen
    parts = [np.array_split(one, most) for one in (at, seen)]
    return np.array([part.mean() for part in parts[0]]), np.array([of(part) for part in parts[1]])


def _slopes(at: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, float]:
    """Slopes between all pairs, ascending, and their median; pairs at one time have none."""
    first, second = np.triu_indices(at.size, 1)
    apart = at[second] - at[first]
    there = apart > 0
    slopes = np.sort((seen[second] - seen[first])[there] / apart[there])
    return slopes, float(np.median(slopes)) if slopes.size else 0.0


def _interval(slopes: np.ndarray, seen: np.ndarray, apart: float, alpha: float) -> tuple[float, float]:
    """Interval of the median slope, from the variance of Kendall's S as of so many independent samples."""
    from scipy.special import stdtrit  # whoever reads a trend needs none of it

    count = seen.size
    ties = np.unique(seen, return_counts=True)[1].astype(float)
    variance = (count * (count - 1) * (2 * count + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    variance *= count / apart
    reach = float(stdtrit(max(1.0, apart - 2), 1 - alpha / 2)) * math.sqrt(variance)
    rank = math.floor((slopes.size - reach) / 2)  # from below as from above
    return (float(slopes[rank - 1]), float(slopes[-rank])) if rank > 0 else (-math.inf, math.inf)
