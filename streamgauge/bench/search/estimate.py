"""Fits the cost of a batch to closed-loop windows, and derives the sustainable rate from it.

A micro-batch of n rows takes T = a + b·n. At rate r a backlog of age A is n = r·A rows, so the system catches up as
long as r < n/T(n). The limit is (1 − a/A)/b or, where the engine takes at most N rows a batch, N/(a + b·N) if that is
smaller (docs/definitions.md). A process that still compiles is slower by a factor 1 + c·exp(−t/τ), which is fitted
beside a and b. An engine without micro-batches has no a: its limit is the rate that it carries while it is behind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from streamgauge.bench.measurements.search.record import Constraint, Estimate
from streamgauge.bench.search.continuous import near_the_top
from streamgauge.bench.search.point import FLOOR, Point
from streamgauge.records.measurement import Batch, Window
from streamgauge.records.spread import Spread

Floats = NDArray[np.float64]

CONFIDENCE = 0.90
#: time constants of the compile curve that are tried, seconds
_TAUS = (5.0, 8.0, 12.0, 18.0, 27.0, 40.0, 60.0, 90.0)
#: share of χ² that a compile curve must explain to be kept, in units of the remaining χ² per degree: five standard
#: errors. A machine whose own speed wanders makes windows differ, too, but must not be extrapolated
_BELIEVED = 25.0
_ITERATIONS = 10
#: largest half width of an interval on logarithms: wider ones say nothing, and overflow
_WIDEST = 10.0
#: number of times that hiccups are searched again, with the fit's expectation
_LOOKS = 3
_ROUNDING = 1e-12
_NORMAL = 1.645
#: deviation of the logarithm of fresh processes' rates where one alone is known: the largest that was seen
UNSEEN = 0.08


def fit(
    windows: Sequence[Window],
    allowed_age_s: float,
    *,
    continuous: bool,
    most_rows: float,
    cap_rows: int | None = None,
) -> Estimate | None:
    """The estimate from all valid windows of one process; None before there is any.

    most_rows: what the driver's queues hold. cap_rows: the engine's cap of a batch, if it is known already.

    Weighted least squares over window means, so that a long window of small batches does not outweigh a short one of
    large batches, near which the answer lies.
    """
    sound = [w for w in windows if w.invalid is None and w.purpose != "compile" and w.rows and w.seconds]
    if not sound:
        return None
    cap = None if continuous else cap_rows or _cap([Point.of(window) for window in sound])
    if not continuous:  # a cold batch beyond the allowed age lies far from the answer, and would tilt the line
        sound = [w for w in sound if w.purpose != "warm-up" or w.seconds <= allowed_age_s * len(w.batches)] or sound
    points = [Point.of(window) for window in sound]
    # only a warm-up shows a compile curve: the rungs also differ in their rows
    taus = (None, *_TAUS) if any(w.purpose == "warm-up" for w in sound) else (None,)
    if continuous:
        points = [Point.of(window) for window in near_the_top(sound)]
        return _carried(points, allowed_age_s, _pooled(points), taus)
    line = _best(points, taus)
    for _ in range(_LOOKS):
        looked = [Point.of(w, line.seconds(p)) for w, p in zip(sound, points, strict=True)]
        if looked == points:
            break
        points, line = looked, _best(looked, taus)
    noise = _pooled(points)
    hiccups, error = _hiccups(points)
    a, b = line.a * (1 + hiccups), line.b * (1 + hiccups)
    rate, constraint, backlog = _limit(a, b, cap, allowed_age_s, most_rows)
    if rate <= 0:
        return None
    spread = math.hypot(_spread(line, points, cap, allowed_age_s, most_rows), _NORMAL * error)
    return Estimate(
        rate, rate * math.exp(-spread), rate * math.exp(spread), constraint, backlog,
        a, b, cap, _whole_noise(points, noise), line.excess(max(p.at_s for p in points)), hiccups, line.misfit,
    )  # fmt: skip


def _best(points: Sequence[Point], taus: Sequence[float | None]) -> _Fit:
    """The fit with the compile curve that the windows show, if any."""
    noise = _pooled(points)
    flat, *curved = [_solve(points, tau, noise) for tau in taus]
    best = min(curved, key=lambda solved: solved.chi2, default=flat)
    return best if flat.chi2 - best.chi2 > _BELIEVED * best.scale else flat


def excesses(points: Sequence[Point]) -> Floats:
    """Excess of a batch's time in each window over the line a + b·n through all of them, on logarithms."""
    n, t = np.array([p.rows for p in points]), np.array([p.seconds for p in points])
    a, b = _line(n, t, 1 / (t * np.array([p.error for p in points])))
    excess: Floats = np.log(t / (a + b * n))
    return excess


def best_rows(estimate: Estimate, allowed_age_s: float, part: float) -> float:
    """Rows of a batch that lasts that part of the allowed age, beyond its batch cost."""
    a, b = estimate.batch_cost_s or 0.0, estimate.row_cost_s
    return max(0.0, (allowed_age_s - a) * part / b) if b > 0 else math.inf


@dataclass(frozen=True)
class _Fit:
    a: float
    b: float
    c: float
    tau: float | None
    chi2: float
    misfit: float
    jacobian: Floats  # of the parameters that are free
    free: list[int]
    scale: float

    def seconds(self, point: Point) -> float:
        """Seconds that a batch of that window takes."""
        return (self.a + self.b * point.rows) * (1 + self.excess(point.at_s))

    def excess(self, at_s: float) -> float:
        return 0.0 if self.tau is None else self.c * math.exp(-at_s / self.tau)


def _solve(points: Sequence[Point], tau: float | None, noise: float) -> _Fit:
    """Gauss–Newton on T = (a + b·n)(1 + c·exp(−t/τ)), a and b not negative.

    All windows share one noise: were each weighted by its own, those without a hiccup would decide alone.
    """
    n, t = np.array([p.rows for p in points]), np.array([p.seconds for p in points])
    at, count = np.array([p.at_s for p in points]), np.array([p.count for p in points])
    error = np.hypot(noise / np.sqrt(count), FLOOR)
    curve = np.zeros_like(n) if tau is None else np.exp(-at / tau)
    free = _free(n, tau)
    theta = np.array([*_line(n, t, 1 / (t * error)), 0.0])
    for _ in range(_ITERATIONS):
        residual, columns = _system(theta, n, t, curve, error)
        norm = _norm(columns[:, free])
        before = theta.copy()
        theta[free] += np.linalg.lstsq(columns[:, free] / norm, residual, rcond=1e-9)[0] / norm
        theta[:2] = np.maximum(theta[:2], 0.0)
        theta[2] = min(max(theta[2], -0.5), 4.0)
        if (np.abs(theta - before) <= 1e-9 * np.abs(theta)).all():
            break
        if theta[0] == 0 and 0 in free:
            free = [place for place in free if place != 0]
    residual, columns = _system(theta, n, t, curve, error)
    chi2 = float((residual**2).sum())
    degrees = max(1, len(points) - len(free))
    a, b, c = (float(value) for value in theta)
    return _Fit(a, b, c, tau, chi2, float(np.abs(residual).max()), columns[:, free], free, max(1.0, chi2 / degrees))


def _free(n: Floats, tau: float | None) -> list[int]:
    """Indices of those of (a, b, c) that can be separated: a line needs batches of two sizes."""
    line = [0, 1] if n.max() > 1.1 * n.min() else [1]
    return line if tau is None else [*line, 2]


def _norm(columns: Floats) -> Floats:
    """The length of each column: seconds, seconds a row and parts have scales that are millions apart."""
    length: Floats = np.maximum(np.sqrt((columns**2).sum(0)), 1e-300)
    return length


def _system(theta: Floats, n: Floats, t: Floats, curve: Floats, error: Floats) -> tuple[Floats, Floats]:
    """Weighted residuals, and the Jacobian of the weighted model."""
    a, b, c = theta
    scale, cost = 1 + c * curve, a + b * n
    model = np.maximum(cost * scale, 1e-12)
    weight = 1 / (model * error)
    return (t - model) * weight, np.stack([scale * weight, n * scale * weight, cost * curve * weight], 1)


def _line(n: Floats, t: Floats, weight: Floats) -> tuple[float, float]:
    """The weighted least-squares a ≥ 0, b ≥ 0 of t = a + b·n; a is 0 where all batches have one size."""
    x, y, w = n * weight, t * weight, weight
    ww, xx, wx, wy, xy = (w * w).sum(), (x * x).sum(), (w * x).sum(), (w * y).sum(), (x * y).sum()
    determinant = ww * xx - wx * wx
    if n.max() > 1.1 * n.min() and determinant > 0:
        a, b = (xx * wy - wx * xy) / determinant, (ww * xy - wx * wy) / determinant
        if a >= 0 and b >= 0:
            return float(a), float(b)
        if b < 0:
            return float(wy / ww), 0.0
    return 0.0, float(xy / xx)


def _cap(points: Sequence[Point]) -> int | None:
    """The engine's own limit of a batch: the rows that it took where more were waiting."""
    met = [p.rows for p in points if p.capped]
    return round(max(met)) if met else None


def _limit(
    a: float, b: float, cap: int | None, allowed_age_s: float, most_rows: float
) -> tuple[float, Constraint, float]:
    """(rate, what binds it, the backlog at which it lies)."""
    by_age = (1 - a / allowed_age_s) / b if b > 0 else math.inf
    limits: list[tuple[float, Constraint, float]] = []
    if cap is not None:  # of limits that are equal but for rounding, the one that was seen
        limits.append((cap / (a + b * cap) * (1 - _ROUNDING), "batch cap", cap))
    limits.append((by_age, "age", by_age * allowed_age_s))
    if math.isfinite(most_rows):
        limits.append((most_rows / (a + b * most_rows), "queue memory", most_rows))
    return min(limits, key=lambda limit: limit[0])


def _spread(line: _Fit, points: Sequence[Point], cap: int | None, allowed_age_s: float, most_rows: float) -> float:
    """Half the width of the interval of the logarithm of the rate: the delta method, t for the few windows."""
    if not math.isfinite(_limit(line.a, line.b, cap, allowed_age_s, most_rows)[0]):
        return 0.0  # no growth was seen yet
    norm = _norm(line.jacobian)
    scaled = line.jacobian / norm
    covariance = np.linalg.pinv(scaled.T @ scaled, rcond=1e-12, hermitian=True) * line.scale / np.outer(norm, norm)
    gradient = np.zeros(len(norm))
    low = _limit(line.a, line.b, cap, allowed_age_s, most_rows)[0]
    for place, parameter in enumerate(line.free):
        up = [line.a, line.b, 0.0]
        step = 1e-3 * up[parameter] + 1e-12
        up[parameter] += step
        high = _limit(up[0], up[1], cap, allowed_age_s, most_rows)[0]
        if high > 0 and low > 0 and math.isfinite(high):
            gradient[place] = (math.log(high) - math.log(low)) / step
    variance = float(gradient @ covariance @ gradient)
    degrees = max(2, len(points) - len(gradient))
    return min(_WIDEST, float(stdtrit(degrees, (1 + CONFIDENCE) / 2)) * math.sqrt(max(0.0, variance)))


def _carried(points: Sequence[Point], allowed_age_s: float, noise: float, taus: Sequence[float | None]) -> Estimate:
    """The rate that an engine without micro-batches carries while it is behind, once warm."""
    flat = [replace(p, rows=1.0, seconds=p.seconds / p.rows) for p in points]  # seconds of one row
    line = _best(flat, taus)
    hiccups, lost = _hiccups(points)
    cost = (line.a + line.b) * (1 + hiccups)
    error = math.sqrt(line.scale / sum(p.error**-2 for p in flat))
    spread = math.hypot(float(stdtrit(max(2, len(flat) - 1), (1 + CONFIDENCE) / 2)) * error, _NORMAL * lost)
    rate = 1 / cost
    return Estimate(
        rate, rate * math.exp(-spread), rate * math.exp(spread), "system", rate * allowed_age_s,
        None, cost, None, _whole_noise(points, noise), line.excess(max(p.at_s for p in points)), hiccups, line.misfit,
    )  # fmt: skip


def _hiccups(points: Sequence[Point]) -> tuple[float, float]:
    """(What hiccups add to the time of all batches, relative; its standard error). They are pooled over all windows:
    a window holds too few batches to tell how often they come.
    """
    spent = sum(p.seconds * p.count for p in points)
    late = [seconds for p in points for seconds in p.hiccup_s]
    return sum(late) / spent, math.sqrt(sum(s * s for s in late)) / spent


def _pooled(points: Sequence[Point]) -> float:
    """Relative deviation of a batch that is no hiccup, over all windows."""
    return math.sqrt(sum(p.count * p.deviation**2 for p in points) / sum(p.count for p in points))


def _whole_noise(points: Sequence[Point], noise: float) -> float:
    """Relative deviation of a batch, hiccups included."""
    late = sum((seconds / p.seconds) ** 2 for p in points for seconds in p.hiccup_s)
    return math.sqrt(noise**2 + late / sum(p.count for p in points))


def relative_error(batches: Sequence[Batch]) -> float:
    """Relative standard error of the mean cost of these batches; infinite for fewer than two."""
    if len(batches) < 2:
        return math.inf
    point = Point.of(Window(0, "ladder", 0, tuple(batches)))
    return point.deviation / math.sqrt(point.count)


def interval(rates: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """The t interval of the geometric mean, on logarithms; None for fewer than two rates."""
    if len(rates) < 2:
        return None
    half, middle = differ_of(rates, confidence) / math.sqrt(len(rates)), float(np.mean(np.log(rates)))
    return math.exp(middle - half), math.exp(middle + half)


def differ_of(rates: Sequence[float], confidence: float = CONFIDENCE) -> float:
    """Part by which one more rate differs from the middle of all, on logarithms; of a single one, UNSEEN is taken."""
    if len(rates) < 2:
        return _NORMAL * UNSEEN
    return float(stdtrit(len(rates) - 1, (1 + confidence) / 2)) * float(np.log(rates).std(ddof=1))


def geometric_mean(rates: Sequence[float]) -> float:
    return math.exp(float(np.mean(np.log(rates))))


def spread_of(values: Sequence[float | None]) -> Spread | None:
    """The geometric mean and its interval; None if one has no value above 0: without it, the others tell too much."""
    known = [value for value in values if value]
    if not known or len(known) < len(values):
        return None
    low, high = interval(known) or (None, None)
    return Spread(value=geometric_mean(known), low=low, high=high, samples=len(known))
