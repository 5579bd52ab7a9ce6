"""Change points of one series: where its level steps, by how much, and with what confidence.

The search is that of E-divisive (Matteson and James 2014) with a t-test in place of permutations, as in Hunter
(Fleming et al., ICPE 2023). Four differences each prevent a kind of false alarm:

- the t-test is corrected for the number of candidate positions, since the best of them is tested, not a random one;
- spikes and a weekly pattern are removed first;
- autocorrelation of neighbours raises the threshold;
- a step must explain more than a straight line (a drift) does.

Subintervals are searched too (Kovács et al., "Seeded binary segmentation", 2023), so that a bump between two equal
levels is found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import chdtrc, stdtr, stdtrit

from streamgauge.base.errors import UserError
from streamgauge.base.words import counted
from streamgauge.stats.ab import effect, logs, pooled_noise, shift
from streamgauge.stats.outcomes import Change, Found

#: fewest values on either side of a change: fewer cannot be told from spikes
SEGMENT = 4
#: relative; smaller steps are not reported
MAGNITUDE = 0.02
#: probability that a month of nightly looks at a series without a change finds one
ALPHA = 0.01
#: thirty looks at a growing series give as many false alarms as this many independent ones (benchmarks/changes.py)
LOOKS = 3
_SPIKE = 3.5  # standard deviations
_WEEK = 7
_PATTERN = 1e-3  # largest p-value at which a weekly pattern is removed


def find(
    values: Sequence[float],
    days: Sequence[float] | None = None,
    *,
    segment: int = SEGMENT,
    magnitude: float = MAGNITUDE,
    alpha: float = ALPHA,
    series: int = 1,
) -> Found:
    """Finds the change points of positive values in order of time.

    days: each value's time in days, if a weekly pattern shall be looked for and removed. series: number of series that
    are searched together; each gets its share of alpha. Raises UserError for a value that is not positive, and for
    settings out of range.
    """
    if segment < 2 or not (0 < alpha < 1) or not (0 <= magnitude < 1) or series < 1:
        raise UserError(
            f"found segment {segment}, magnitude {magnitude:g}, alpha {alpha:g}, series {series}; "
            "allowed: 2 or more, 0 to 1, between 0 and 1, 1 or more"
        )
    level = logs(values, "series") if len(values) else np.empty(0)
    if level.size < 2 * segment:
        reason = f"{counted(level.size, 'value')}: at least {2 * segment} are needed to detect a change"
        return Found([], None, None, False, level.size, reason)
    search = _Search(segment, math.log1p(magnitude), alpha / (LOOKS * series))
    steady = level if days is None else _without_week(level, np.asarray(days, dtype=float))
    clean = _without_spikes(steady, 2 * segment - 1)
    edges = [0, *search.settle(clean, sorted(search.cuts(clean))), level.size]
    parts = [clean[begin:end] for begin, end in pairwise(edges)]
    noise = pooled_noise(*parts) or 0.0
    changes = []
    for begin, at, end in zip(edges, edges[1:], edges[2:], strict=False):
        ratio, interval = shift(clean[begin:at], clean[at:end])
        before, after = (float(np.exp(np.median(part))) for part in (level[begin:at], level[at:end]))
        sure = 1 - search.significance(clean[begin:end], at - begin)
        changes.append(
            Change(at, ratio - 1, interval and (interval[0] - 1, interval[1] - 1), sure, before, after, begin)
        )
    return Found(changes, math.expm1(noise), search.detectable(noise, len(parts[-1])), steady is not level, level.size)


@dataclass(frozen=True)
class _Search:
    segment: int
    magnitude: float  # of logarithms
    limit: float  # of a p-value that is corrected for the number of candidate positions

    def cuts(self, x: np.ndarray, begin: int = 0) -> list[int]:
        """Binary segmentation: the most significant split of any seeded interval, then both sides of it."""
        if x.size < 2 * self.segment:
            return []
        place = self._best(x)
        if place is None:
            return []
        return [begin + place, *self.cuts(x[:place], begin), *self.cuts(x[place:], begin + place)]

    def settle(self, x: np.ndarray, cuts: list[int]) -> list[int]:
        """Tests every cut again between its neighbours and drops the weakest, until all are significant."""
        while cuts:
            edges = [0, *cuts, x.size]
            p = [
                self.significance(x[begin:end], at - begin) if self._is_step(x[begin:end], at - begin) else 1.0
                for begin, at, end in zip(edges, cuts, edges[2:], strict=False)
            ]
            weakest = int(np.argmax(p))
            if p[weakest] <= self.limit:
                break
            cuts = cuts[:weakest] + cuts[weakest + 1 :]
        return cuts

    def significance(self, x: np.ndarray, at: int) -> float:
        """p-value of a step at x[at], corrected for all candidate positions in x and for autocorrelation.

        The latter is the lag-1 autocorrelation of the residuals, where it is positive.
        """
        n, left, right = x.size, x[:at], x[at:]
        residual = np.concatenate([left - left.mean(), right - right.mean()])
        squares = float(residual @ residual)
        gap = abs(float(right.mean() - left.mean()))
        if squares <= n * (1e-9 * (1 + abs(float(x[0])))) ** 2:  # no noise at all
            return 0.0 if gap > 1e-9 else 1.0
        alike = max(0.0, float(residual[1:] @ residual[:-1]) / squares)
        t = gap / math.sqrt(squares / (n - 2) * (1 / at + 1 / (n - at)) * (1 + alike) / (1 - alike))
        return min(1.0, 2 * float(stdtr(n - 2, -t)) * (n - 2 * self.segment + 1))

    def detectable(self, noise: float, last: int) -> float:
        """Least relative step that `segment` more values would show, after `last` values at the current level."""
        p = self.limit / (2 * max(last - self.segment + 1, 1))
        t = -float(stdtrit(max(last + self.segment - 2, 1), p))
        return effect(max(self.magnitude, t * noise * math.sqrt(1 / self.segment + 1 / last)))

    def _best(self, x: np.ndarray) -> int | None:
        begin, at, end, price, firsts = _places(x.size, self.segment)
        total, squares = (np.concatenate([[0.0], np.cumsum(v)]) for v in (x - x.mean(), (x - x.mean()) ** 2))
        n, left, right = end - begin, at - begin, end - at
        gap = (total[end] - total[at]) / right - (total[at] - total[begin]) / left
        within = squares[end] - squares[begin] - (total[end] - total[begin]) ** 2 / n - gap**2 * left * right / n
        tiny = 1e-18 * (1 + x[0] ** 2) * n
        t = np.abs(gap) / np.sqrt(np.maximum(within, tiny) / (n - 2) * (1 / left + 1 / right))
        p = stdtr(n - 2, -t) * 2 * price
        ends = [*firsts[1:], p.size]
        bests = [first + int(np.argmin(p[first:last])) for first, last in zip(firsts, ends, strict=True)]
        for best in sorted(bests, key=lambda place: float(p[place])):
            if p[best] > self.limit:
                break
            part = x[begin[best] : end[best]]
            place = int(left[best])
            paid = self.significance(part, place) * price[best] / (part.size - 2 * self.segment + 1)
            if paid <= self.limit and self._is_step(part, place):
                return int(at[best])
        return None

    def _is_step(self, x: np.ndarray, at: int) -> bool:
        """True if the step is large enough and explains more than a straight line, in its place or on top of it.

        The Bayesian information criterion (BIC) penalises its parameters.
        """
        left, right = x[:at], x[at:]
        if abs(float(np.median(right) - np.median(left))) < self.magnitude:
            return False
        time = np.arange(x.size) - (x.size - 1) / 2
        rest, step = x - x.mean(), np.where(np.arange(x.size) < at, 0.0, 1.0)
        step -= step.mean()
        flat = _squares(rest, step)
        line = _squares(rest, time)
        both = _squares(rest - time * (time @ rest) / (time @ time), step - time * (time @ step) / (time @ time))
        price = 2 * math.log(x.size)  # two parameters: height and position (BIC)
        return bool(x.size * math.log(line / flat) > price or x.size * math.log(line / both) > 2 * price)


def _squares(rest: np.ndarray, part: np.ndarray) -> float:
    """Sum of squares that is left of `rest` after a regression on `part`."""
    return max(float(rest @ rest - (part @ rest) ** 2 / (part @ part)), 1e-30)


@lru_cache(maxsize=512)
def _places(n: int, segment: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[int]]:
    """(begin, at, end, price) of every split of every seeded interval, and where each interval's splits begin.

    price: the factor by which a p-value is corrected. Half of the significance level goes to the whole series, half
    to its parts.
    """
    intervals = [(0, n)]
    length = n / math.sqrt(2)
    while length >= 4 * segment:
        count = 2 * math.ceil(n / length) - 1
        starts = np.linspace(0, n - length, count)
        intervals += [(math.floor(s), math.ceil(s + length)) for s in starts]
        length /= math.sqrt(2)
    rows: list[tuple[int, int, int, float]] = []
    firsts = []
    for number, (begin, end) in enumerate(intervals):
        splits = end - begin - 2 * segment + 1
        share = 1.0 if len(intervals) == 1 else 2.0 if number == 0 else 2.0 * (len(intervals) - 1)
        firsts.append(len(rows))
        rows += [(begin, at, end, splits * share) for at in range(begin + segment, end - segment + 1)]
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return columns[0], columns[1], columns[2], columns[3], firsts


def _without_spikes(x: np.ndarray, window: int) -> np.ndarray:
    """Replaces outliers by the median of their window (Hampel filter); half a window or more is not a spike."""
    middle = np.median(sliding_window_view(np.pad(x, window // 2, mode="reflect"), window), axis=1)
    spread = 1.4826 * float(np.median(np.abs(np.diff(x)))) / math.sqrt(2)
    clean: np.ndarray = np.where(np.abs(x - middle) > _SPIKE * spread, middle, x) if spread else x
    return clean


def _without_week(x: np.ndarray, days: np.ndarray) -> np.ndarray:
    """x without its weekday effects if they are significant (Kruskal–Wallis test), else x itself."""
    spacing = float(np.median(np.diff(days)))
    window = 2 * round(_WEEK / spacing / 2 - 0.5) + 1 if spacing > 0 else 0
    if window < 5 or x.size < 3 * window:
        return x
    level = np.median(sliding_window_view(x, window), axis=1)
    inner = slice(window // 2, window // 2 + level.size)
    rest = x[inner] - level
    weekday = np.floor(days).astype(int) % _WEEK
    ranks = np.argsort(np.argsort(rest)) + 1.0
    effects, statistic = np.zeros(_WEEK), 0.0
    present = [day for day in range(_WEEK) if (weekday[inner] == day).any()]
    for day in present:
        chosen = weekday[inner] == day
        effects[day] = float(np.median(rest[chosen]))
        statistic += float(ranks[chosen].sum()) ** 2 / int(chosen.sum())
    statistic = 12 * statistic / (rest.size * (rest.size + 1)) - 3 * (rest.size + 1)
    if len(present) < 2 or float(chdtrc(len(present) - 1, statistic)) > _PATTERN:
        return x
    rest_of_x: np.ndarray = x - effects[weekday]
    return rest_of_x
