"""Compares a candidate with a baseline: their ratio, with an interval that holds for small samples.

The estimate is that of Hodges and Lehmann ("Estimates of Location Based on Rank Tests", 1963) on logarithms:
the median of all ratios candidate/baseline. The interval inverts the exact two-sided Mann–Whitney test
(Bauer 1972). For two samples that differ by a factor it has its coverage for every distribution of the noise,
and ties only widen it. If repetitions are interleaved, a drift of the machine is noise in both samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from streamgauge.base.errors import UserError
from streamgauge.base.words import counted
from streamgauge.stats.outcomes import CONFIDENCE, Comparison, Verdict

#: a relative change smaller than this does not matter
SMALLEST_EFFECT = 0.02
#: probability of seeing an effect of the detectable size
POWER = 0.8
#: fewest values in each sample: with 3 and 3, no interval by ranks reaches 95 %
LEAST = 4
#: values and their reciprocals that are formed into ratios: all results stay finite
_LARGEST = 1e100
#: above this many pairs the normal approximation of the ranks is as good as exact
_EXACT_PAIRS = 2_500
_SIMULATED = 4_000


def compare(
    baseline: Sequence[float],
    candidate: Sequence[float],
    *,
    higher_is_better: bool = False,
    smallest_effect: float = SMALLEST_EFFECT,
    self_comparison: tuple[Sequence[float], Sequence[float]] | None = None,
    confidence: float = CONFIDENCE,
) -> Comparison:
    """Compares two samples of positive numbers.

    self_comparison: both samples of an A/A run of the same series, which then sets the noise floor; a smaller effect
    does not matter. Raises UserError for a value that is not a positive number, or for no values.
    """
    if not (0 < smallest_effect < 1):
        raise UserError(f"smallest effect: found {smallest_effect:g}, allowed: above 0, below 1 (0.02 is 2 %)")
    a, b = logs(baseline, "baseline"), logs(candidate, "candidate")
    ratio, interval = shift(a, b, confidence)
    pairs = [(logs(x, "A/A"), logs(y, "A/A")) for x, y in [self_comparison]] if self_comparison else [(a, b)]
    noise = pooled_noise(*(sample for pair in pairs for sample in pair))
    units = unit_effects(a.size, b.size, confidence)
    floor, detectable = (None if noise is None or unit is None else effect(noise * unit) for unit in units)
    matters = smallest_effect
    if self_comparison and floor is not None and detectable is not None:
        x, y = pairs[0]  # a difference between equals is noise too, whatever its cause
        floor = max(floor, math.expm1(abs(float(np.median(x) - np.median(y)))))
        detectable, matters = max(detectable, floor), max(matters, floor)
    verdict, reason = judge(ratio, interval, matters, higher_is_better)
    if interval is None:
        reason = f"{a.size} and {counted(b.size, 'value')} are too few for {confidence:.0%}; {LEAST} of each are enough"
    return Comparison(ratio, interval, verdict, reason, noise, floor, detectable, matters, a.size, b.size, confidence)


def judge(
    ratio: float, interval: tuple[float, float] | None, smallest_effect: float, higher_is_better: bool
) -> tuple[Verdict, str]:
    """(verdict, reason) of a ratio and its interval.

    better or worse: the interval excludes 1, and the ratio differs from 1 by smallest_effect or more; same: the
    interval excludes every larger change; else inconclusive.
    """
    if interval is None:
        return "inconclusive", "too few values"
    low, high = interval
    up, down = 1 + smallest_effect, 1 / (1 + smallest_effect)
    if (low > 1 and ratio >= up) or (high < 1 and ratio <= down):
        better = (ratio > 1) == higher_is_better
        return ("better" if better else "worse"), f"{ratio - 1:+.2%}, and the interval excludes 'no change'"
    if down <= low and high <= up:
        return "same", f"the interval rules out a change of more than {smallest_effect:.2%}"
    return "inconclusive", f"the interval contains changes both smaller and larger than {smallest_effect:.2%}"


def logs(values: Sequence[float], what: str) -> np.ndarray:
    """Natural logarithms. Raises UserError, which names the first value that has none."""
    numbers = np.asarray(values, dtype=float)
    if numbers.size == 0:
        raise UserError(f"{what}: found no values, allowed: {LEAST} or more positive numbers")
    if numbers.ndim != 1:
        raise UserError(f"{what}: found {numbers.ndim} dimensions, allowed: one list of numbers")
    bad = np.flatnonzero(~((numbers >= 1 / _LARGEST) & (numbers <= _LARGEST)))
    if bad.size:
        raise UserError(
            f"{what}: value {bad[0] + 1}: found {numbers[bad[0]]:g}, allowed: positive numbers from "
            f"{1 / _LARGEST:g} to {_LARGEST:g} (a ratio is formed)"
        )
    logarithms: np.ndarray = np.log(numbers)
    return logarithms


def effect(change: float) -> float:
    """Relative change for a change on logarithms; an overflow becomes a large finite number."""
    return math.expm1(min(change, 2 * math.log(_LARGEST)))


def pooled_noise(*samples: np.ndarray) -> float | None:
    """Pooled standard deviation within the samples; None if no sample has two values."""
    freedom = sum(s.size - 1 for s in samples)
    return math.sqrt(sum(float(((s - s.mean()) ** 2).sum()) for s in samples) / freedom) if freedom else None


def shift(a: np.ndarray, b: np.ndarray, confidence: float = CONFIDENCE) -> tuple[float, tuple[float, float] | None]:
    """(ratio, interval) of b to a, both given as logarithms; the interval is None for too few values."""
    pairs, rank = a.size * b.size, critical_rank(a.size, b.size, confidence)
    ends = [] if rank is None else [rank, pairs - 1 - rank]
    one, other, *bounds = np.exp(_kth_difference(b, a, [(pairs - 1) // 2, pairs // 2, *ends])).tolist()
    return math.sqrt(one * other), (bounds[0], bounds[1]) if bounds else None


@lru_cache(maxsize=256)
def critical_rank(m: int, n: int, confidence: float = CONFIDENCE) -> int | None:
    """0-based rank of the pairwise difference at the interval's lower end; None if no rank gives the confidence.

    The interval [D(k), D(mn−1−k)] of the ordered differences misses with probability 2·P(U ≤ k).
    """
    allowed = (1 - confidence) / 2
    if m * n > _EXACT_PAIRS:
        spread = math.sqrt(m * n * (m + n + 1) / 12)
        rank = math.floor(m * n / 2 + float(ndtri(allowed)) * spread - 0.5)
        return rank if rank >= 0 else None
    ways = _ways(m, n)
    below, limit = 0, allowed * math.comb(m + n, m)
    for rank, count in enumerate(ways):
        below += count
        if below > limit:
            return rank - 1 if rank else None
    return None


def _ways(m: int, n: int) -> list[int]:
    """Number of the C(m+n, m) orders that give each value of U: coefficients of the Gaussian binomial."""
    ways = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for u in range(m * n, n + i - 1, -1):
            ways[u] -= ways[u - n - i]
        for u in range(i, m * n + 1):
            ways[u] += ways[u - i]
    return ways


def _kth_difference(b: np.ndarray, a: np.ndarray, ranks: list[int]) -> np.ndarray:
    """The order statistics of all b − a at these 0-based ranks; many differences take linear memory only."""
    if a.size * b.size <= 4_000_000:
        return np.partition(np.subtract.outer(b, a).ravel(), ranks)[ranks]
    a = np.sort(a)
    return np.array([_bisect_rank(a, b, rank) for rank in ranks])


def _bisect_rank(a: np.ndarray, b: np.ndarray, rank: int) -> float:
    low, high = float(b.min() - a[-1]), float(b.max() - a[0])
    for _ in range(60):
        middle = (low + high) / 2
        if int((a.size - np.searchsorted(a, b - middle)).sum()) > rank:  # pairs with b − a ≤ middle
            high = middle
        else:
            low = middle
    return high


@lru_cache(maxsize=256)
def unit_effects(m: int, n: int, confidence: float = CONFIDENCE) -> tuple[float | None, float | None]:
    """(noise floor, detectable effect) in standard deviations of one repetition; None where no interval exists.

    They come from simulated normal noise with a fixed seed. Samples above 30 are scaled from 30 by 1/√n.
    """
    small_m, small_n = min(m, 30), min(n, 30)
    rank = critical_rank(small_m, small_n, confidence)
    if rank is None:
        return None, None
    draws = np.random.default_rng(20_190_624).standard_normal((_SIMULATED, small_m + small_n))
    differences = (draws[:, small_m:, None] - draws[:, None, :small_m]).reshape(_SIMULATED, -1)
    differences.sort(axis=1)
    scale = math.sqrt((1 / m + 1 / n) / (1 / small_m + 1 / small_n))
    centre = np.abs(np.median(differences, axis=1))
    # an effect of that size lifts the interval's lower end above zero
    seen = float(np.quantile(-differences[:, rank], POWER))
    return float(np.quantile(centre, confidence)) * scale, seen * scale
