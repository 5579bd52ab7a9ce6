"""Plans what is carried on parts of the machine: windows in turns, one part after the other.

Each block visits all parts once, in a seeded order. A point is a part in a block: a window of small batches and one of
large ones, or one window of an engine without batches. The fit of a ladder tells its rate, as the search's does. A part
is a number of CPUs, or a value of a setting, whose process is another one and has further windows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from streamgauge.base.errors import Outage, UserError
from streamgauge.bench.measurements.search.record import Estimate
from streamgauge.bench.search.continuous import warm_up_rows
from streamgauge.bench.search.estimate import fit
from streamgauge.bench.search.steps import LEAST_BATCHES, Hold
from streamgauge.config import Search
from streamgauge.records.measurement import Limits, Window

#: a large batch takes this part of what the allowed age leaves beyond its batch cost, which is much of it on a small
#: part of the machine; and a small batch has so many times fewer rows
_PART, _SMALLER = 0.5, 8
#: its rows take at least this part of the allowed age, also where the batch cost is expected to leave nothing: windows
#: of single rows tell nothing of what a row costs
_LEAST = 0.1
#: without batches, the backlog is this part of the allowed age at the rate of all CPUs; in a process with another
#: setting, it grows from there until that no longer helps
_BACKLOG = 0.5
#: in a process with another setting, the last batches take this part of what the allowed age leaves: just beyond the
#: answer, as in the search. A window has at most so many times the rows of the one before
_BEYOND, _GROWS = 1.15, 4
#: where rates are in proportion, a limit that lies at more than so many times the rows of all windows is measured
_FAR = 4
#: times that a point is measured until it has an estimate
_TRIES = 2
#: most points in a row without an estimate
GIVE_UP = 3
#: carries windows out on a part, in the context that it opens
Visit = Callable[[float], AbstractContextManager[Callable[[Hold], Window]]]


@dataclass(frozen=True)
class Point:
    """The estimate for a part of the machine in a block; None, with the reason, without a valid window."""

    block: int
    cpus: float
    estimate: Estimate | None
    reason: str = ""


def order(parts: Sequence[float], block: int, seed: int) -> list[float]:
    return [float(cpus) for cpus in np.random.default_rng((seed, block)).permutation(sorted(parts))]


def measure_parts(
    parts: Sequence[float],
    blocks: int,
    seed: int,
    settings: Search,
    limits: Limits,
    whole: Estimate,
    visit: Visit,
    *,
    in_proportion: bool = True,
) -> list[Point]:
    """Measures all points; gives up, with fewer, once the last ones have no estimate.

    whole: the estimate of the search. in_proportion: it is that of the largest part, and of the same process. Otherwise
    nothing but its rate is expected of the others, and a process that does not start leaves its point without one.
    Raises Outage, which is worth a retry, if there was one and no point has an estimate.
    """
    same = whole if in_proportion else None
    points: list[Point] = []
    outage: Outage | None = None
    for block, cpus in [(turn, part) for turn in range(blocks) for part in order(parts, turn, seed)]:
        expected = _expected(points, cpus, whole, max(parts) if in_proportion else None)
        try:
            with visit(cpus) as measure:
                for _ in range(_TRIES):
                    windows = _windows(settings, limits, expected, same, measure)
                    point = _point(block, cpus, windows, settings, limits, same)
                    if point.estimate is not None:
                        break
        except (UserError, Outage) as problem:
            if in_proportion:
                raise
            outage = problem if isinstance(problem, Outage) else outage
            point = Point(block, cpus, None, str(problem))
        points.append(point)
        if len(points) >= GIVE_UP and all(one.estimate is None for one in points[-GIVE_UP:]):
            break
    if outage is not None and all(one.estimate is None for one in points):
        raise outage
    return points


def _windows(
    settings: Search, limits: Limits, expected: Estimate, same: Estimate | None, measure: Callable[[Hold], Window]
) -> list[Window]:
    """Measures the windows of a point, up to the first that is invalid."""
    windows: list[Window] = []
    left = steps(settings, limits, expected, same)
    while left and not (windows and windows[-1].invalid):
        step = left.pop(0)
        windows.append(measure(step))
        if not left and (rows := _more_rows(windows, step.rows, settings, limits, same)) > step.rows:
            left = [dataclasses.replace(step, rows=rows)]
    return windows


def _more_rows(windows: Sequence[Window], held: int, settings: Search, limits: Limits, same: Estimate | None) -> int:
    """Rows of the next window: towards the plateau, or beyond the answer, where a cap and a bend show; 0 at the end.

    Where rates are in proportion, the windows lie near the answer. One that lies far beyond them is none: two windows
    whose batches took as long tell nothing of what a row costs.
    """
    age = settings.max_age.seconds
    if limits.continuous:
        if same is not None:
            return 0
        rows = warm_up_rows(windows, age, limits.most_rows)
        return rows if rows >= 2 * held else 0
    so_far = _fit(windows, settings, limits, same)
    if so_far is None or (1 if same is None else _FAR) * held > so_far.backlog_rows - 1:
        return 0
    return int(min(limits.most_rows, _GROWS * held, so_far.rows_for(age, _BEYOND)))


def steps(settings: Search, limits: Limits, expected: Estimate, same: Estimate | None) -> list[Hold]:
    """The windows of a point whose estimate will be about the expected one. same: of the largest part, if known."""
    age, long_s = settings.max_age.seconds, 2 * settings.window_seconds
    if limits.continuous:
        rows = min(limits.most_rows, _BACKLOG * age * (same or expected).rate_events_per_s)
        return [_hold(rows, "on the plateau", long_s, LEAST_BATCHES)]
    large = max(expected.rows_for(age, _PART), expected.cost.rows(expected.cost.batch_s + _LEAST * age))
    small = large / _SMALLER
    if same is not None and same.cap_rows is not None and large > same.cap_rows:
        large, small = 2.0 * same.cap_rows, same.cap_rows / 3
    return [
        _hold(min(small, limits.most_rows), "small batches", settings.window_seconds / 2, LEAST_BATCHES),
        _hold(min(large, limits.most_rows), "large batches", long_s, LEAST_BATCHES - 1),
    ]


def _hold(rows: float, why: str, seconds: float, least: int) -> Hold:
    return Hold(1, "ladder", int(max(1.0, rows)), why, seconds, seconds, 1.0, least)


def _expected(points: Sequence[Point], cpus: float, whole: Estimate, most: float | None) -> Estimate:
    """The estimate that is expected on so many CPUs: that of the last point with as many, else in proportion.

    most: CPUs of the whole; None: rates need not be in proportion, so the last estimate is expected.
    """
    known = [(one.cpus, one.estimate) for one in points if one.estimate is not None]
    alike = [one for one in known if one[0] == cpus]
    at, estimate = [(most or cpus, whole), *known, *alike][-1]
    costs = at / cpus if most else 1.0
    return dataclasses.replace(
        estimate,
        rate_events_per_s=estimate.rate_events_per_s / costs,
        batch_cost_s=None if estimate.batch_cost_s is None else estimate.batch_cost_s * costs,
        row_cost_s=estimate.row_cost_s * costs,
        row_growth_s=estimate.row_growth_s * costs,
    )


def _point(
    block: int, cpus: float, windows: Sequence[Window], settings: Search, limits: Limits, same: Estimate | None
) -> Point:
    if wrong := next((one.invalid for one in windows if one.invalid), None):
        return Point(block, cpus, None, wrong)
    estimate = _fit(windows, settings, limits, same)
    return Point(block, cpus, estimate, "" if estimate else "no window told what a batch costs")


def _fit(windows: Sequence[Window], settings: Search, limits: Limits, same: Estimate | None) -> Estimate | None:
    return fit(
        windows, settings.max_age.seconds, limits,
        cap_rows=same.cap_rows if same else None, like=same.cost if same else None,
    )  # fmt: skip
