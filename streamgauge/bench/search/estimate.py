"""Fits the cost of a batch to closed-loop windows, and derives the sustainable rate from it.

A micro-batch of n rows takes T(n) = a + b·n + q·n². At rate r a backlog of age A is n = r·A rows, so the system
catches up as long as r < n/T(n). The limit n/A lies where T(n) = A or, if the engine takes at most N < n rows a batch,
it is N/T(N) (docs/definitions.md). A line, with q = 0, and the parabola count as far as the windows favour each. A
process that still compiles is slower by a factor 1 + c·exp(−t/τ), which is fitted beside the costs. An engine without
micro-batches has no a: its limit is the rate that it carries while it is behind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, stdtrit

from streamgauge.bench.measurements.search.record import Constraint, Estimate
from streamgauge.bench.search.continuous import near_the_top
from streamgauge.bench.search.point import FLOOR, Point
from streamgauge.records.measurement import Batch, Limits, Window
from streamgauge.records.spread import Spread
from streamgauge.stats.batch_cost import BatchCost, mean_cost

Floats = NDArray[np.float64]
#: the largest backlog that something allows
_Backlog = tuple[float, Constraint]

CONFIDENCE = 0.90
#: time constants of the compile curve that are tried, seconds
_TAUS = (5.0, 8.0, 12.0, 18.0, 27.0, 40.0, 60.0, 90.0)
#: share of χ² that a compile curve must explain to be kept, in units of the remaining χ² per degree: five standard
#: errors. A machine whose own speed wanders makes windows differ, too, but must not be extrapolated
_BELIEVED = 25.0
#: what one more parameter must explain of χ² to be as likely as none (Akaike)
_PENALTY = 2.0
#: batches of so many sizes show a bend; each is larger than the one before by this factor
_BEND_SIZES, _LARGER = 3, 1.1
#: places of a, b, q and c among a fit's parameters
_A, _B, _Q, _C = range(4)
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
    windows: Sequence[Window], allowed_age_s: float, limits: Limits, *,
    cap_rows: int | None = None, like: BatchCost | None = None,
) -> Estimate | None:  # fmt: skip
    """The estimate from all valid windows of one process; None before there is any.

    cap_rows: the engine's cap of a batch, if it is known already. like: what rows cost in the same process with other
    CPUs, if that is known: only by how many times they cost more is fitted.

    Weighted least squares over window means, so that a long window of small batches does not outweigh a short one of
    large batches, near which the answer lies.
    """
    sound = [w for w in windows if w.invalid is None and w.purpose != "compile" and w.rows and w.seconds]
    if not sound:
        return None
    cap = None if limits.continuous else cap_rows or _cap([Point.of(window) for window in sound])
    if not limits.continuous:  # a cold batch beyond the allowed age lies far from the answer, and would tilt the line
        sound = [w for w in sound if w.purpose != "warm-up" or w.seconds <= allowed_age_s * len(w.batches)] or sound
    points = [Point.of(window) for window in sound]
    # only a warm-up shows a compile curve: the rungs also differ in their rows
    taus = (None, *_TAUS) if any(w.purpose == "warm-up" for w in sound) else (None,)
    if limits.continuous:
        return _carried([Point.of(window) for window in near_the_top(sound)], allowed_age_s, taus)
    bend = 0.0 if like is None else like.growth_s / max(like.row_s, _ROUNDING)
    fits = _weighted(points, taus, bend)
    for _ in range(_LOOKS):
        looked = [Point.of(w, fits[0][1].seconds(p)) for w, p in zip(sound, points, strict=True)]
        if looked == points:
            break
        points, fits = looked, _weighted(looked, taus, bend)
    hiccups, lost = _hiccups(points)
    cost = mean_cost((weight, one.cost) for weight, one in fits).times(1 + hiccups)
    most: list[_Backlog] = [(limits.most_rows, "queue memory")]
    if cap is not None:  # of limits that are equal but for rounding, the one that was seen
        most.append((cap * (1 - _ROUNDING), "batch cap"))
    limit = partial(_limit, allowed_age_s, most)
    rate, constraint, backlog = limit(cost)
    if rate <= 0:
        return None
    variance = (_NORMAL * lost) ** 2
    for weight, one in fits:
        apart = _NORMAL * _apart(limit(one.cost.times(1 + hiccups))[0], rate)
        variance += weight * (_spread(one, len(points), limit) ** 2 + apart**2)
    spread = min(_WIDEST, math.sqrt(variance))
    return Estimate(
        rate, rate * math.exp(-spread), rate * math.exp(spread), constraint, backlog,
        cost.batch_s, cost.row_s, cap, _whole_noise(points),
        fits[0][1].excess(max(p.at_s for p in points)), hiccups, fits[0][1].misfit, cost.growth_s,
    )  # fmt: skip


def _weighted(points: Sequence[Point], taus: Sequence[float | None], bend: float) -> list[tuple[float, _Fit]]:
    """Fits with their weights, the likeliest first: of a line and a parabola, or of the bend that is known.

    A few windows seldom tell whether a cost bends, so the estimate is the mean of both, and the interval holds what
    lies between them: Burnham & Anderson, Model Selection and Multimodel Inference (2002), section 4.3.
    """
    line = _best(points, taus, bend=bend)
    bent = None if bend or _sizes(points) < _BEND_SIZES else _best(points, taus, is_bent=True)
    if bent is None or len(points) <= len(bent.free) or not bent.theta[_Q]:
        return [(1.0, line)]
    penalty = _PENALTY * (bent.parameters - line.parameters)
    weight = float(expit(((line.chi2 - bent.chi2) / bent.scale - penalty) / 2))
    return sorted([(weight, bent), (1 - weight, line)], key=lambda one: -one[0])


def _apart(one: float, other: float) -> float:
    """Difference on logarithms: the widest where one alone is 0, and 0 where one has no limit."""
    if min(one, other) <= 0 or math.isinf(max(one, other)):
        return _WIDEST if min(one, other) <= 0 < max(one, other) else 0.0
    return abs(math.log(one / other))


def _sizes(points: Sequence[Point]) -> int:
    """Number of sizes of batches that differ clearly."""
    rows = np.sort([point.rows for point in points])
    return 1 + int((rows[1:] > _LARGER * rows[:-1]).sum())


def _best(points: Sequence[Point], taus: Sequence[float | None], *, bend: float = 0.0, is_bent: bool = False) -> _Fit:
    """The fit with the compile curve that the windows show, if any."""
    noise = _pooled(points)
    flat, *curved = [_solve(points, tau, noise, bend, is_bent=is_bent) for tau in taus]
    best = min(curved, key=lambda solved: solved.chi2, default=flat)
    return best if flat.chi2 - best.chi2 > _BELIEVED * best.scale else flat


def excesses(points: Sequence[Point]) -> Floats:
    """Excess of a batch's time in each window over the line a + b·n through all of them, on logarithms."""
    n, t = np.array([p.rows for p in points]), np.array([p.seconds for p in points])
    a, b = _line(n, t, 1 / (t * np.array([p.error for p in points])))
    excess: Floats = np.log(t / (a + b * n))
    return excess


@dataclass(frozen=True)
class _Fit:
    theta: Floats  # a, b, q and c
    bend: float  # q over b, where that is known
    tau: float | None
    chi2: float
    misfit: float
    jacobian: Floats  # of the parameters that are free
    free: list[int]
    scale: float

    @property
    def cost(self) -> BatchCost:
        return _cost(self.theta, self.bend)

    @property
    def parameters(self) -> int:
        """Number of parameters that were fitted, with the compile curve's time constant."""
        return len(self.free) + (self.tau is not None)

    def seconds(self, point: Point) -> float:
        """Seconds that a batch of that window takes."""
        return self.cost.seconds(point.rows) * (1 + self.excess(point.at_s))

    def excess(self, at_s: float) -> float:
        return 0.0 if self.tau is None else float(self.theta[_C]) * math.exp(-at_s / self.tau)


def _cost(theta: Floats, bend: float) -> BatchCost:
    return BatchCost(float(theta[_A]), float(theta[_B]), float(theta[_Q] + bend * theta[_B]))


def _solve(points: Sequence[Point], tau: float | None, noise: float, bend: float, *, is_bent: bool) -> _Fit:
    """Gauss–Newton on T = (a + b·n + q·n²)(1 + c·exp(−t/τ)), the costs not negative.

    All windows share one noise: were each weighted by its own, those without a hiccup would decide alone.
    """
    n, t = np.array([p.rows for p in points]), np.array([p.seconds for p in points])
    at, count = np.array([p.at_s for p in points]), np.array([p.count for p in points])
    error = np.hypot(noise / np.sqrt(count), FLOOR)
    curve = np.zeros_like(n) if tau is None else np.exp(-at / tau)
    basis = np.stack([np.ones_like(n), n * (1 + bend * n), n * n])
    free = _free(n, tau, is_bent=is_bent)
    theta = np.array([*_line(basis[_B], t, 1 / (t * error)), 0.0, 0.0])
    for _ in range(_ITERATIONS):
        residual, columns = _system(theta, basis, t, curve, error)
        norm = _norm(columns[:, free])
        before = theta.copy()
        theta[free] += np.linalg.lstsq(columns[:, free] / norm, residual, rcond=1e-9)[0] / norm
        theta[:_C] = np.maximum(theta[:_C], 0.0)
        theta[_C] = min(max(theta[_C], -0.5), 4.0)
        if (np.abs(theta - before) <= 1e-9 * np.abs(theta)).all():
            break
        free = [place for place in free if theta[place] > 0 or place == _C or (place == _B and not is_bent)]
    residual, columns = _system(theta, basis, t, curve, error)
    chi2 = float((residual**2).sum())
    degrees = max(1, len(points) - len(free))
    misfit = float(np.abs(residual).max())
    return _Fit(theta, bend, tau, chi2, misfit, columns[:, free], free, max(1.0, chi2 / degrees))


def _free(n: Floats, tau: float | None, *, is_bent: bool) -> list[int]:
    """Returns places of the parameters that can be separated: a line needs batches of two sizes."""
    costs = [_A, _B] if n.max() > _LARGER * n.min() else [_B]
    return [*costs, *([_Q] if is_bent else []), *([] if tau is None else [_C])]


def _norm(columns: Floats) -> Floats:
    """The length of each column: seconds, seconds a row and parts have scales that are millions apart."""
    length: Floats = np.maximum(np.sqrt((columns**2).sum(0)), 1e-300)
    return length


def _system(theta: Floats, basis: Floats, t: Floats, curve: Floats, error: Floats) -> tuple[Floats, Floats]:
    """Weighted residuals, and the Jacobian of the weighted model."""
    scale, cost = 1 + theta[_C] * curve, theta[:_C] @ basis
    model = np.maximum(cost * scale, 1e-12)
    weight = 1 / (model * error)
    return (t - model) * weight, np.stack([*(basis * scale * weight), cost * curve * weight], 1)


def _line(n: Floats, t: Floats, weight: Floats) -> tuple[float, float]:
    """The weighted least-squares a ≥ 0, b ≥ 0 of t = a + b·n; a is 0 where all batches have one size."""
    x, y, w = n * weight, t * weight, weight
    ww, xx, wx, wy, xy = (w * w).sum(), (x * x).sum(), (w * x).sum(), (w * y).sum(), (x * y).sum()
    determinant = ww * xx - wx * wx
    if n.max() > _LARGER * n.min() and determinant > 0:
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


def _limit(allowed_age_s: float, most: Sequence[_Backlog], cost: BatchCost) -> tuple[float, Constraint, float]:
    """(rate, what binds it, the backlog at which it lies). most: the largest backlogs, whatever a batch costs."""
    backlogs: list[_Backlog] = [(cost.rows(allowed_age_s), "age"), *most]
    rows, constraint = min(backlogs)
    return (rows / cost.seconds(rows) if math.isfinite(rows) else math.inf), constraint, rows


def _spread(one: _Fit, windows: int, limit: Callable[[BatchCost], tuple[float, Constraint, float]]) -> float:
    """Half the width of the interval of the logarithm of the rate: the delta method, t for the few windows."""
    low = limit(one.cost)[0]
    if not math.isfinite(low):
        return 0.0  # batches have not grown with their rows yet
    norm = _norm(one.jacobian)
    scaled = one.jacobian / norm
    covariance = np.linalg.pinv(scaled.T @ scaled, rcond=1e-12, hermitian=True) * one.scale / np.outer(norm, norm)
    gradient = np.zeros(len(norm))
    for place, parameter in enumerate(one.free):
        if parameter == _C:
            continue
        up = one.theta.copy()
        step = 1e-3 * up[parameter] or _ROUNDING
        up[parameter] += step
        high = limit(_cost(up, one.bend))[0]
        if high > 0 and low > 0 and math.isfinite(high):
            gradient[place] = (math.log(high) - math.log(low)) / step
    variance = float(gradient @ covariance @ gradient)
    degrees = max(2, windows - len(gradient))
    return min(_WIDEST, float(stdtrit(degrees, (1 + CONFIDENCE) / 2)) * math.sqrt(max(0.0, variance)))


def _carried(points: Sequence[Point], allowed_age_s: float, taus: Sequence[float | None]) -> Estimate:
    """The rate that an engine without micro-batches carries while it is behind, once warm."""
    flat = [replace(p, rows=1.0, seconds=p.seconds / p.rows) for p in points]  # seconds of one row
    line = _best(flat, taus)
    hiccups, lost = _hiccups(points)
    cost = line.cost.seconds(1) * (1 + hiccups)
    error = math.sqrt(line.scale / sum(p.error**-2 for p in flat))
    spread = math.hypot(float(stdtrit(max(2, len(flat) - 1), (1 + CONFIDENCE) / 2)) * error, _NORMAL * lost)
    rate = 1 / cost
    return Estimate(
        rate, rate * math.exp(-spread), rate * math.exp(spread), "system", rate * allowed_age_s,
        None, cost, None, _whole_noise(points), line.excess(max(p.at_s for p in points)), hiccups, line.misfit,
    )  # fmt: skip


def _hiccups(points: Sequence[Point]) -> tuple[float, float]:
    """Returns (the part by which hiccups lengthen all batches; its standard error), pooled over all windows.

    A window holds too few batches to tell how often they come.
    """
    spent = sum(p.seconds * p.count for p in points)
    late = [seconds for p in points for seconds in p.hiccup_s]
    return sum(late) / spent, math.sqrt(sum(s * s for s in late)) / spent


def _pooled(points: Sequence[Point]) -> float:
    """Relative deviation of a batch that is no hiccup, over all windows."""
    return math.sqrt(sum(p.count * p.deviation**2 for p in points) / sum(p.count for p in points))


def _whole_noise(points: Sequence[Point]) -> float:
    """Relative deviation of a batch, hiccups included."""
    late = sum((seconds / p.seconds) ** 2 for p in points for seconds in p.hiccup_s)
    return math.sqrt(_pooled(points) ** 2 + late / sum(p.count for p in points))


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
