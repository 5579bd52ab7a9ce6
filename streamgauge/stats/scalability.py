"""Fits the universal scalability law to rates over cores, with intervals, and derives the cores that a rate demands.

On N cores a system carries X(N) = λN / (1 + σ(N − 1) + κN(N − 1)) (Gunther, 1993): σ is contention, the part that cores
do one after the other, and κ coherency, what each pair of cores costs. N/X is linear in 1/λ, σ/λ and κ/λ, so the fit is
a weighted linear one, as the error of a rate is relative. σ and κ are ratios of coefficients: their intervals are those
of Fieller (1954). `python -m benchmarks.scalability` prints how often they hold the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.90
#: three coefficients, and one number of cores more that can contradict them
LEAST_SIZES = 4
#: largest number of cores over the smallest; on fewer, neither coefficient shows
LEAST_SPAN = 4.0
#: p-value below which the means of the points are taken not to follow the law
MISFIT = 0.01
_ROUNDS, _ROUNDING = 5, 1e-9
#: most cores that a demand is looked for on
MOST_CORES = 4096


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of the law, or a rate by it, with its 90 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Refused:
    """Reason why the points do not carry the law."""

    reason: str


@dataclass(frozen=True)
class Law:
    """The fitted law: N/X = a + b(N − 1) + cN(N − 1), with the covariance of a, b and c.

    By chance a fitted coefficient may be below 0, and would let some number of cores carry anything. So all that the
    law tells is of a fit in which none is, and each interval holds both fits.
    """

    one_core: float  # events/s
    contention: Coefficient
    coherency: Coefficient
    most_cores: float  # that were measured
    free: tuple[float, ...]  # a, b and c of the free fit
    covariance: tuple[tuple[float, ...], ...]
    quantile: float
    bounded: tuple[float, ...]  # a, b and c, none of them below 0

    @property
    def peak(self) -> float:
        """Cores on which it carries the most; infinite without coherency."""
        a, b, c = self.bounded
        return math.sqrt(max(0.0, a - b) / c) if c > 0 else math.inf

    def rate(self, cores: float) -> Coefficient:
        """The rate in events/s on so many cores, with its 90 % interval; infinite if nothing bounds it."""
        return Coefficient(*map(float, self._rates(np.array([cores])).ravel()))

    def demand(self, rate: float, differ: float = 0.0) -> Demand:
        """The least whole number of cores for a rate in events/s.

        differ: by which part the speed of a fresh process differs from that of the measured one, with 90 %.
        """
        enough = self._rates(np.arange(1.0, MOST_CORES + 1), differ) >= rate * (1 - _ROUNDING)
        value, high, low = (int(one.argmax()) + 1 if one.any() else None for one in enough)
        return Demand(rate, value, low, high, self.most_cores)

    def _rates(self, cores: np.ndarray, differ: float = 0.0) -> np.ndarray:
        """Rows with the rates on so many cores, and with both ends of their intervals."""
        shape = _shape(cores)
        free, middle = (shape @ np.array(one) for one in (self.free, self.bounded))
        reach = self.quantile * np.sqrt(np.einsum("ij,jk,ik->i", shape, np.array(self.covariance), shape))
        reach = np.hypot(reach, differ * middle)
        each = np.stack([middle, np.maximum(middle, free + reach), np.minimum(middle, free - reach)])
        return np.where(each > 0, cores / np.where(each > 0, each, 1.0), math.inf)


@dataclass(frozen=True)
class Demand:
    """Least cores for a rate, from `low` to `high` with 90 %; None: no number of cores carries it."""

    rate_events_per_s: float
    cores: int | None
    low: int | None
    high: int | None
    most_cores: float

    @property
    def is_beyond(self) -> bool:
        """True if no measured number of cores is so large: the law is continued then."""
        return self.cores is None or self.cores > self.most_cores


def cost_per_billion(cores: float, rate: float, core_hour: float) -> float:
    """Money for a billion events, on so many cores that carry this rate in events/s."""
    return cores * core_hour / 3600 / rate * 1e9


def carried(cores: float, one_core: float, contention: float, coherency: float) -> float:
    """The rate on so many cores by the law."""
    return one_core * cores / (1 + contention * (cores - 1) + coherency * cores * (cores - 1))


def fit(points: Sequence[tuple[float, float]]) -> Law | Refused:
    """Fits the law to (cores, events/s), one or several for each number of cores."""
    if not all(0 < one < math.inf for point in points for one in point):
        return Refused("a size or a rate is not a number above 0")
    cores, rates = (np.array([point[place] for point in points], dtype=float) for place in (0, 1))
    sizes = np.unique(cores)
    if sizes.size < LEAST_SIZES:
        return Refused(f"{sizes.size} sizes were measured, at least {LEAST_SIZES} are needed")
    if sizes[0] < 1:
        return Refused(f"{sizes[0]:g} of a core: a quota below one core measures throttling, not scaling")
    if sizes[-1] < LEAST_SPAN * sizes[0]:
        return Refused(
            f"sizes from {sizes[0]:g} to {sizes[-1]:g}: the largest must be {LEAST_SPAN:g} times the smallest"
        )
    shape, seen = _shape(cores), cores / rates
    weight = seen
    for _ in range(_ROUNDS):  # the error is relative to the law's value, which the last round knows best
        scaled = shape / weight[:, None]
        found = np.linalg.lstsq(scaled, seen / weight, rcond=None)[0]
        fitted = shape @ found
        if not (fitted > 0).all():
            return Refused("the points contradict the law: it would carry nothing on some of them")
        weight = fitted
    return _judged(cores, sizes, shape / weight[:, None], seen / weight, found)


def _judged(
    cores: np.ndarray, sizes: np.ndarray, scaled: np.ndarray, seen: np.ndarray, found: np.ndarray
) -> Law | Refused:
    from scipy.optimize import nnls  # whoever reads a law needs none of it
    from scipy.special import stdtrit

    rest, freedom = seen - scaled @ found, cores.size - 3
    if (wrong := _misfit(cores, sizes, rest)) < MISFIT:
        return Refused(
            f"the points do not follow the law: by chance they would lie so far from it in {100 * wrong:.2g} %"
        )
    covariance = float(rest @ rest) / freedom * np.linalg.inv(scaled.T @ scaled)
    quantile = float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
    found_of = [_fieller(found, covariance, place, quantile) for place in (1, 2)]
    for name, one in zip(("contention", "coherency"), found_of, strict=True):
        if one is None:
            return Refused(f"the points are too noisy: nothing bounds the {name}")
        if one[1] < -_ROUNDING:
            return Refused(f"the points rise faster than the law allows: the {name} would be at most {one[1]:.3g}")
    first, *others = bounded = tuple(map(float, nnls(scaled, seen)[0]))
    if not first:
        return Refused("the points contradict the law: one core would carry anything")
    contention, coherency = (
        Coefficient(one / first, max(0.0, min(low, one / first)), max(high, one / first))
        for one, (low, high) in zip(others, filter(None, found_of), strict=True)
    )
    if contention.high - contention.low >= 1:
        low, high = contention.low, contention.high
        return Refused(f"the points are too noisy: the contention may be anything from {low:.3g} to {high:.3g}")
    rows = tuple(tuple(map(float, row)) for row in covariance)
    return Law(1 / first, contention, coherency, float(sizes[-1]), tuple(map(float, found)), rows, quantile, bounded)


def _shape(cores: np.ndarray) -> np.ndarray:
    return np.stack([np.ones_like(cores), cores - 1, cores * (cores - 1)], axis=1)


def _misfit(cores: np.ndarray, sizes: np.ndarray, rest: np.ndarray) -> float:
    """p-value of the means over each number of cores lying so far from the law; 1 where none was measured twice."""
    from scipy.special import fdtrc

    spread, lack = cores.size - sizes.size, sizes.size - 3
    if not spread or float(rest @ rest) < _ROUNDING**2 * rest.size:
        return 1.0
    groups = [rest[cores == size] for size in sizes]
    within = sum(float(((one - one.mean()) ** 2).sum()) for one in groups)
    between = sum(one.size * float(one.mean()) ** 2 for one in groups)
    return float(fdtrc(lack, spread, between / lack / max(within / spread, 1e-300)))


def _fieller(found: np.ndarray, covariance: np.ndarray, place: int, quantile: float) -> tuple[float, float] | None:
    """Interval of found[place] / found[0]; None if it is unbounded."""
    squared = quantile**2
    above, below = float(found[place]), float(found[0])
    a = below**2 - squared * float(covariance[0, 0])
    b = above * below - squared * float(covariance[0, place])
    c = above**2 - squared * float(covariance[place, place])
    if a <= 0:
        return None
    half = math.sqrt(max(0.0, b * b - a * c))  # the coefficient itself lies inside, so only rounding is below 0
    return (b - half) / a, (b + half) / a
